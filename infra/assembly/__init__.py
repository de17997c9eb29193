"""How template.yaml and infra/observability.yaml are put together, as text, from fragments and patterns."""
