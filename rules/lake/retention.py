"""Which curated files may be deleted when they are old."""

# Every recompute is made from all rows of these: without the old ones, streaks and balances would be others.
RECOMPUTED_FROM = ("daily_activity", "ledger", "streaks")
