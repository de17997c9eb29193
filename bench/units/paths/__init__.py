"""What each path through the system is: one module a domain."""
