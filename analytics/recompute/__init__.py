"""Recomputes every user's streak and totals, from the curated lake alone."""
