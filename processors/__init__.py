"""One module per stream or queue consumer."""
