"""Rebuilds the tables of engagement from the lake (rule 21)."""
