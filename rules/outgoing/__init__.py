"""Outgoing webhooks: what the customer's systems are told, where that may go, and when it is tried again."""
