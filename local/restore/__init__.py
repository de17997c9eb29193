"""`streakline restore` (rule 21)."""
