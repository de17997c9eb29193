"""For tests of whole runs over a lake."""

from tests.unit.lake.conftest import objects

__all__ = ["objects"]
