"""A batch of BPEvents' stream: pairs of a record and its event, and what became of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rules.engagement.account_state import Day, Profile
from rules.engagement.events import Event
from rules.stream_places import is_beyond

Record = Mapping[str, Any]
Pairs = Sequence[tuple[Record, Event]]


@dataclass(slots=True)
class AppliedBatch:
    """What became of records: each is applied, a duplicate, to come again, or poison.

    erased: those of users who were erased. again: sequence numbers. profiles, days: as written. done:
    user id -> event ids that are applied by now.
    """

    applied: int = 0
    duplicates: int = 0
    erased: int = 0
    again: list[str] = field(default_factory=list)
    poison: list[tuple[Any, str]] = field(default_factory=list)
    profiles: dict[str, Profile] = field(default_factory=dict)
    days: dict[Any, Day] = field(default_factory=dict)
    done: dict[str, list[str]] = field(default_factory=dict)

    def counts(self) -> dict[str, int]:
        """Return how many records came to what."""
        kept = {"again": len(self.again), "poison": len(self.poison)}
        return {"applied": self.applied, "duplicates": self.duplicates, "erased": self.erased, **kept}

    def add(self, other: "AppliedBatch") -> None:
        """Add what became of other records."""
        self.applied += other.applied
        self.duplicates += other.duplicates
        self.erased += other.erased
        self.again += other.again
        self.poison += other.poison
        self.profiles |= other.profiles
        self.days |= other.days
        self.done |= other.done


def distinct_events(pairs: Pairs) -> list[Event]:
    """Return the events of some records, each once."""
    return list({event.event_id: event for _, event in pairs}.values())


def place_of(record: Record) -> str:
    """Return a record's place in its stream (rules.stream_places); "" if it does not tell."""
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
