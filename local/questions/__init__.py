"""What commands do with questions: the demo asks, the smoke test proves, the planner counts."""
