"""Lake curation, warehouse load, batch recompute, reports."""
