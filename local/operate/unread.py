"""What a stream holds that its consumer has not processed, read from the stream itself."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from local.cloud.streams import EventSourceMapping, arrival_of, is_wanted, read_records
from local.operate.verdict import Consumer
from local.stack import Stack

PAGES_MAX = 5  # of up to a thousand records
FED = frozenset({"Enabled", "Enabling", "Creating", "Updating"})


@dataclass(frozen=True, slots=True)
class Unread:
    """What a consumer of a shard has not processed. oldest, newest: when they arrived (epoch seconds).

    newest: of all records that were read, also of those that the consumer's filter leaves out.
    """

    records: int = 0
    oldest: float | None = None
    newest: float | None = None
    is_more: bool = False


def unread(
    stack: Stack, mapping: EventSourceMapping, iterator: str, *, since: float = 0.0, empty_max: int = 1
) -> Unread:
    """Read what follows an iterator, for some pages. since: older records (epoch seconds) are done.

    empty_max: after so many empty pages nothing follows. Raises what botocore raises.
    """
    patterns = [json.loads(each) for each in mapping.patterns]
    found, newest, empty, place = list[float](), None, 0, iterator
    for _ in range(PAGES_MAX * empty_max):
        records, following = read_records(stack, mapping, place)
        arrived = [(arrival_of(each), each) for each in records]
        found += [at for at, each in arrived if at > since and is_wanted(each, patterns)]
        newest = max([at for at, _ in arrived] + ([newest] if newest else []), default=None)
        empty = 0 if records else empty + 1
        if not following or empty >= empty_max:
            return Unread(len(found), min(found, default=None), newest)
        place = following
    return Unread(len(found), min(found, default=None), newest, is_more=True)


def summed(
    name: str, stack: Stack, found: Sequence[tuple[EventSourceMapping, Unread]], states: Sequence[str]
) -> Consumer:
    """Return a consumer with what waits in all of its shards. states: those of its mappings."""
    tables = {physical: logical for logical, physical in stack.tables.items()}
    waiting: dict[str, int] = {}
    for mapping, each in found:
        stream = mapping.source.split("/")[1]
        stream = tables.get(stream, "Events" if mapping.is_kinesis else stream)
        waiting[stream] = waiting.get(stream, 0) + each.records
    return Consumer(
        name,
        tuple(states),
        waiting,
        oldest_at=_instant(min((each.oldest for _, each in found if each.oldest), default=None)),
        newest_at=_instant(max((each.newest for _, each in found if each.newest), default=None)),
        is_more=any(each.is_more for _, each in found),
    )


def trouble(states: Sequence[str]) -> str:
    """Return why a consumer gets nothing, from the states of its mappings; "" if it does."""
    bad = sorted({each for each in states if each not in FED})
    return f"an event source mapping is {', '.join(bad)}" if bad else ""


def _instant(seconds: float | None) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
