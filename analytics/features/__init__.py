"""Features of leads as SQL: as of any past instant, and in the warehouse."""
