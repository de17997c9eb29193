"""Outgoing webhooks: what changes is told, and what is told is delivered."""
