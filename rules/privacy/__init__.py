"""What is kept of persons, and what remains when one is erased (docs/rules.md, rule 10)."""
