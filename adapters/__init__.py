"""The only place that talks to the outside: one module per store or service."""
