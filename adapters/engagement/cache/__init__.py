"""What engagement_cache.py is made of: the connection, the commands, the scripts."""
