"""A batch of BPEvents' stream: pairs of a record and its event, and what became of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from processors.batches import BatchResult, Record
from rules.engagement.account import is_beyond
from rules.engagement.account_state import Day, Profile
from rules.engagement.events import Event

Pairs = Sequence[tuple[Record, Event]]


@dataclass(slots=True)
class AppliedBatch(BatchResult):
    """counts: applied, duplicates, erased (users were). profiles, days: as written. done: user id -> event
    ids that are applied by now.
    """

    profiles: dict[str, Profile] = field(default_factory=dict)
    days: dict[Any, Day] = field(default_factory=dict)
    done: dict[str, list[str]] = field(default_factory=dict)

    def add(self, other: Self) -> None:
        """Add what became of other records."""
        BatchResult.add(self, other)  # slots make a new class, which super() does not find
        self.profiles |= other.profiles
        self.days |= other.days
        self.done |= other.done


def distinct_events(pairs: Pairs) -> list[Event]:
    """Return the events of some records, each once."""
    return list({event.event_id: event for _, event in pairs}.values())


def place_of(record: Record) -> str:
    """Return a record's place in its stream (rules.engagement.account); "" if it does not tell."""
    _, found, label = str(record.get("eventSourceARN", "")).partition("/stream/")
    number = str(record["dynamodb"].get("SequenceNumber", ""))
    return f"{label}/{number}" if found and number.isdecimal() else ""


def maybe_applied(profile: Profile, pairs: Pairs) -> dict[str, str]:
    """Return the events that may be applied already: event id -> when it arrived.

    An event is new if its record is beyond all that has been applied from this stream, or if it arrived after
    the newest entry: entries are later than their events.
    """
    head = profile.head.created_at if profile.head else ""
    return {
        event.event_id: event.created_at
        for _, event in pairs
        if event.created_at <= head and not is_beyond(event.place, profile.applied_through)
    }
