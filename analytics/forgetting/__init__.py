"""Persons who were erased leave the lake and the warehouse (docs/rules.md, rule 10)."""
