"""Which curated files may be deleted when they are old."""

# Nights are made from all rows of these: without the old ones, streaks, balances and the stats
# of those who answer would be others. Old events keep the number of the version that judged them.
# Restores are made from the items of tables (rule 21).
KEPT = frozenset({"daily_activity", "ledger", "streaks", "responses", "rules", "table_items"})
