"""AWS services and Redis, without a word of any domain."""
