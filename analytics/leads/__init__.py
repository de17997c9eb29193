"""Nights and restores of leads, and their features as SQL: as of any past instant, and in the warehouse."""
