"""What a user brings along from another system, written."""
