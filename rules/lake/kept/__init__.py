"""What of tables is kept in the lake for restores."""
