"""Outgoing webhooks: changes become notifications, and notifications are delivered."""
