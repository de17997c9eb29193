"""Leads' features as SQL: as of any instant, and in the warehouse."""
