"""Leads that are one: which are, what they did, and what is remembered of them as one."""
