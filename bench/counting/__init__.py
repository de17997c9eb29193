"""Counts units as AWS would: the real handlers run in this process, and a meter notes what they ask for."""
