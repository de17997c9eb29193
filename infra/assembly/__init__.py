"""Puts template.yaml and infra/observability.yaml together, as text, from fragments and patterns."""
