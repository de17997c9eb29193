"""Amnesties: where they are declared, and how they are applied to accounts (rule 17)."""
