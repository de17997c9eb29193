"""Streaks that the book declares: what events contribute, and what follows from it."""
