"""One module for each stream, queue or schedule."""
