"""Erasing and exporting what is known of a person, in every online store (docs/rules.md, rule 10)."""
