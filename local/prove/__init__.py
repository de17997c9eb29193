"""Proofs of ledger entries, and the audit of all copies (rule 19)."""
