"""Streaks that the book declares, as users see them."""
