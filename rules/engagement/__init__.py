"""Events, points, streaks, accounts and their ledger."""
