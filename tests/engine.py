"""The engine that tests run against: see local/engine.py, which benchmarks use too."""

from local.engine import TABLES, Engine, running

__all__ = ["TABLES", "Engine", "running"]
