"""Tables that are filled again."""
