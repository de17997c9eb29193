"""Benchmarks of the lake and of the nightly run."""
