"""Benchmarks of leads."""
