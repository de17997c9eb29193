"""Outgoing webhooks at the door: their endpoints, and the secrets that sign what they are sent."""
