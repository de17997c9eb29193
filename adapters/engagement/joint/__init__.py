"""Writes of several accounts in one request."""
