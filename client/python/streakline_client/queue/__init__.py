"""Events that wait on disk until the service has them."""
