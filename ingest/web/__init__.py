"""What all HTTP doors share, whatever their domain."""
