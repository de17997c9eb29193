"""The book of rules at the door: read it, check one, publish one."""
