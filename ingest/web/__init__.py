"""What all HTTP doors share, in every domain."""
