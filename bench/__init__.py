"""Benchmarks: each compares us with what a user would pick or write instead."""
