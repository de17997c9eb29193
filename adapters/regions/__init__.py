"""Tables of a region that follows another one, and what both have (rule 23)."""
