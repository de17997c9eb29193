"""Reads what the consumers of streams have not processed, and why a consumer gets no records."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from local.cloud.shards import read_records
from local.cloud.streams import EventSourceMapping, arrival_of, is_wanted
from local.operate.verdict import Consumer
from local.stack import Stack

PAGES_MAX = 5  # of up to a thousand records, that are read of a shard
READERS = 8
FEEDING_STATES = frozenset({"Enabled", "Enabling", "Creating", "Updating"})
MappingDescription = dict[str, Any]  # an event source mapping, as Lambda describes it


@dataclass(frozen=True, slots=True)
class Unread:
    """What a consumer of a shard has not processed."""

    records: int = 0
    oldest: float | None = None  # when the oldest of these arrived (epoch seconds)
    newest: float | None = None  # when the newest record arrived, also of records that the filter leaves out
    is_more: bool = False  # more records wait than were read


def is_stream(mapping: MappingDescription) -> bool:
    """Whether a mapping's source is a stream. The other sources are queues."""
    return ":sqs:" not in mapping["EventSourceArn"]


def unread(
    stack: Stack, mapping: EventSourceMapping, iterator: str, *, since: float = 0.0, empty_max: int = 1
) -> Unread:
    """Return what a consumer has not processed behind an iterator of a shard, as far as some pages tell.

    since: records that arrived up to then (epoch seconds) are processed. empty_max: after so many empty pages
    in a row no record follows. Raises what botocore raises.
    """
    patterns = [json.loads(pattern) for pattern in mapping.patterns]
    unread_arrivals, all_arrivals = list[float](), list[float]()
    empty, is_more = 0, True
    for _ in range(PAGES_MAX * empty_max):
        records, following = read_records(stack, mapping.source, iterator)
        for record in records:
            arrival = arrival_of(record)
            all_arrivals.append(arrival)
            if arrival > since and is_wanted(record, patterns):
                unread_arrivals.append(arrival)
        empty = 0 if records else empty + 1
        if not following or empty >= empty_max:
            is_more = False
            break
        iterator = following
    return Unread(
        len(unread_arrivals),
        min(unread_arrivals, default=None),
        max(all_arrivals, default=None),
        is_more=is_more,
    )


def consumer_of_backlog(
    name: str, stack: Stack, backlog: Sequence[tuple[EventSourceMapping, Unread]], states: Sequence[str]
) -> Consumer:
    """Return a consumer with the sum of what waits in its shards. states: of its mappings."""
    tables = {physical: logical for logical, physical in stack.tables.items()}
    waiting: dict[str, int] = {}
    for mapping, shard_unread in backlog:
        physical = mapping.source.split("/")[1]
        stream = tables.get(physical, "Events" if mapping.is_kinesis else physical)
        waiting[stream] = waiting.get(stream, 0) + shard_unread.records
    return Consumer(
        name,
        tuple(states),
        waiting,
        oldest_at=_instant(min((part.oldest for _, part in backlog if part.oldest), default=None)),
        newest_at=_instant(max((part.newest for _, part in backlog if part.newest), default=None)),
        is_more=any(part.is_more for _, part in backlog),
    )


def mapping_trouble(states: Sequence[str]) -> str:
    """Return why a consumer gets no records, by the states of its mappings; "" if it gets them."""
    bad = sorted({state for state in states if state not in FEEDING_STATES})
    return f"an event source mapping is {', '.join(bad)}" if bad else ""


def _instant(seconds: float | None) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
