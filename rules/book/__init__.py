"""The book of rules: what earns what, as data with versions (docs/rules.md, rule 5)."""
