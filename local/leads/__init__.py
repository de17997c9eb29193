"""What commands do with leads: hooks, features; the demo sends, the smoke test proves, the planner counts."""
