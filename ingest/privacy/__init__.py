"""The door for erasures and exports (docs/rules.md, rule 10)."""
