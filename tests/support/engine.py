"""The engine that tests run against: see local/cloud/dynamodb_engine.py, which benchmarks use too."""

from local.cloud.dynamodb_engine import TABLES, Engine, running

__all__ = ["TABLES", "Engine", "running"]
