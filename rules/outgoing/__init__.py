"""Outgoing webhooks: what is sent to the customer's systems, where it may go, and when it is tried again."""
