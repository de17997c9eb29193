"""Where it is kept when users were offline (rule 16)."""
