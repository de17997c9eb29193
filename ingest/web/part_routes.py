"""How the routes of a part are declared (ingest/openapi.py)."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PartRoutes:
    """The routes of a part."""

    apps: Callable[[], Collection[Any]]  # returns what declares them
    tag: str  # of its operations in the OpenAPI document
    paths: str  # a pattern of `METHOD /path` that has the tag
