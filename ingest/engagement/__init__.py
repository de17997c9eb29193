"""The doors of events and of accounts."""
