"""Hashes that prove a ledger: of an entry, of an account's chain, of all accounts (rule 19)."""
