"""Sends input to a deployed stack, and checks its answers by an independent calculation."""
