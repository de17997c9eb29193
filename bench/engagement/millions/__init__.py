"""One Redis with millions of profiles."""
