"""The doors of leads, and the consumer of their queue."""
