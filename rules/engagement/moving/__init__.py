"""What a user brings along from another system (docs/rules.md, rule 20)."""
