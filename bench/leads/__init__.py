"""Benchmarks of leads."""

BENCHMARKS = {"point_in_time": "bench.leads.point_in_time"}  # name -> module
