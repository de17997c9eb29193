"""Hooks: their secrets, signatures that need a library, and how many forms an address has sent."""
