"""Streams, delivered as Lambda does it: the poller, and what it is made of."""
