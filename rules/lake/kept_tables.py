"""How a table is declared whose items the lake has as they are (table_items.py)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Image = Mapping[str, Mapping[str, Any]]  # an item in DynamoDB's wire format


def _every(_image: Image) -> bool:
    return True


def _none(_image: Image) -> bool:
    return False


def _nobody(_image: Image) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class KeptTable:
    """One table."""

    key: tuple[str, ...]  # the names of its key, the partition key first
    # The attributes that are kept: those that follow from nothing else. None: all.
    attributes: frozenset[str] | None = None
    is_kept: Callable[[Image], bool] = _every  # whether the lake has an item
    user_of: Callable[[Image], str | None] = _nobody  # returns the user whose item it is; None: nobody's
    # Whether the removal of an item is kept, too; it takes the item's key.
    is_removal_kept: Callable[[Image], bool] = _none
    is_restored_apart: bool = False  # whether a part restores the items, and no user's rows bring them
