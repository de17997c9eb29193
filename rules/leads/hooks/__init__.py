"""Webhooks as vendors send them: how they are signed, and which secrets open an organization's door."""
