"""`streakline amnesty`: what an outage cost is given back (rule 17)."""
