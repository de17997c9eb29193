"""Benchmarks, each against what a user would pick instead."""
