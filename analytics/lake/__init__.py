"""Where the lake's files are, what they look like, and what they say of themselves."""
