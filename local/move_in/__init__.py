"""Takes in what another system knows of users: histories, or opening positions (docs/rules.md, rule 20)."""
