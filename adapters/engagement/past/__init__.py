"""Where readers of a user's past find what has left the tables (rule 22)."""
