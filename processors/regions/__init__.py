"""Changes of tables -> the other region (rule 23)."""
