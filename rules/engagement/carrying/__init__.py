"""Ledger entries that are named by a later one and written afterwards."""
