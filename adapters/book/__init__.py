"""The book of rules: the shipped one, and the versions that were published."""
