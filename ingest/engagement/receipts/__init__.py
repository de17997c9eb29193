"""Time receipts: given out with answers, and what they prove when they come back (rule 16)."""
