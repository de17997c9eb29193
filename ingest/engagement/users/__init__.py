"""Routes under /v1/users, and what they share."""
