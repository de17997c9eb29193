"""Dates of an outage that count against nobody's streak (rule 17)."""
