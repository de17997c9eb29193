"""AWS services, Redis and PostgreSQL, without a word of any domain."""
