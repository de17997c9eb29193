"""What commands do with leads: hooks, features, and what the smoke test proves."""
