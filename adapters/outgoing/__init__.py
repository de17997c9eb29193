"""Outgoing webhooks: endpoints, notifications, what waits for delivery, and how it is sent."""
