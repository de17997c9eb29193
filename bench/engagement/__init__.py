"""Benchmarks of the engagement path."""
