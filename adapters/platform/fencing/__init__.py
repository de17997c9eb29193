"""The fence before the tables of a region that may have ceased to write (rule 23)."""
