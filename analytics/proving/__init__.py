"""The night's root over all accounts' heads, and what single copies of the ledger tell (rule 19)."""
