"""What has become old leaves the tables, every night (docs/rules.md, rule 22)."""
