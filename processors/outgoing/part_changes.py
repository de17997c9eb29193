"""How changes of a part's items are declared that lead to notifications (notifications.py)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rules.outgoing.derivation import ThingChange

# Reads an item, as DynamoDB writes it, as the holder of its notifications and its change. It raises KeyError,
# TypeError or ValueError for an item that cannot be read.
ReadChange = Callable[[Mapping[str, Any]], tuple[str, ThingChange]]


@dataclass(frozen=True, slots=True)
class PartChanges:
    """The changes of a part's items."""

    settings: Mapping[str, type]  # further settings of the function
    # Returns what reads an item, by the name of its partition key; of the settings and a client of DynamoDB
    readers: Callable[[Any, Any], Mapping[str, ReadChange]]
