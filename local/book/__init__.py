"""`streakline rules`: books of rules as files."""
