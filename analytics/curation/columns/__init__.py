"""Lines of raw objects read by columns."""
