"""Compares the live tables with the lake and with their own ledger, and repairs them."""
