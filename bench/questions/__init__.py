"""Benchmarks of questions."""
