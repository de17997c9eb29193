"""The standings of periods in the table Boards, and their final results (docs/rules.md, rule 25).

A standing's pages are items of its contest (rules.engagement.period_standings). Those of a snapshot begin
with the snapshot's generation, and last a day. Those of a final result have a generation of their own; the
item FINALS of the period names it, is written once, and never changes.
"""

import json
import time
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from adapters.engagement.boards import SNAPSHOTS_KEPT, BoardManifest
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import Refresh, delete_all, get_one, put_all, query_all, write_if
from rules.days import stamp, unstamp
from rules.engagement.boards import Standing, pack_rows, unpack_rows
from rules.engagement.period_standings import (
    FINAL_KEPT,
    Contest,
    Pages,
    PeriodStandings,
    Place,
    first_places,
    pages_of,
)
from rules.engagement.periods import Period, period_named

CONTEST = "contest "  # begins the partition of a contest
FINALS = "finals"  # the partition of the items that name final results, by period
FRESH_SECONDS = 30
PAGES_KEPT = 2000  # of all standings that a process has read


@dataclass(frozen=True, slots=True)
class FinalResult:
    """The item that names the final result of a period."""

    period: Period
    generation: str
    final_at: datetime
    closed_at: datetime  # when it was made
    users: Mapping[str, int]  # how many rows each contest has, without groups: by the attribute, "" for none


def standing_items(
    standings: PeriodStandings, period: Period, generation: str, expires_at: int
) -> tuple[list[Item], dict[str, int]]:
    """Return the pages of a period's contests as items, and how many users each kind of contest has."""
    items: list[Item] = []
    users: dict[str, int] = {}
    for contest, rows in standings.contests(period):
        pages = pages_of(rows)
        users[contest.group] = users.get(contest.group, 0) + len(rows)
        for number, page in enumerate(pages):
            key = {"board": CONTEST + contest.key, "part": part_of(generation, number)}
            item = encode_item({**key, "expires_at": expires_at}) | {"data": {"B": pack_rows(page)}}
            if number == 0:
                item |= {"firsts": {"B": pack_places(first_places(pages))}, "users": {"N": str(len(rows))}}
            items.append(item)
    return items, users


def part_of(generation: str, page: int) -> str:
    """Return the sort key of a page."""
    return f"{generation}#rows{page}"


def pack_places(places: Iterable[Place]) -> bytes:
    """Pack the places of pages' first rows."""
    return zlib.compress(json.dumps(list(places), separators=(",", ":")).encode())


def unpack_places(data: bytes) -> list[Place]:
    """Read what pack_places wrote."""
    return [(score, user) for score, user in json.loads(zlib.decompress(data))]


class StandingStore:
    """Writes standings, and knows which final results are stored."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table
        self._refresh, self._known = Refresh(FRESH_SECONDS), dict[Period, FinalResult]()

    def recent(self) -> dict[Period, FinalResult]:
        """Return the final results by period, half a minute old at most."""
        self._refresh.renew_if_over(self.look)
        return self._known

    def look(self) -> dict[Period, FinalResult]:
        """Return the final results that are stored now, by period, those of the latest end last."""
        asked_at = time.monotonic()
        items = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="board = :finals",
            ExpressionAttributeValues=encode_item({":finals": FINALS}),
            ConsistentRead=True,
        )
        found = sorted(map(_result_from, map(decode_item, items)), key=lambda result: result.period.last)
        self._known = {result.period: result for result in found}
        self._refresh.renew(asked_at)
        return self._known

    def write(self, standings: PeriodStandings, generation: str, as_of: datetime) -> None:
        """Write the pages of a snapshot's standings. Whoever writes the manifest afterwards shows them."""
        expires_at = int((as_of + SNAPSHOTS_KEPT).timestamp())
        for period in standings.instants:
            items, _ = standing_items(standings, period, generation, expires_at)
            put_all(self._dynamodb, self._table, items)

    def close(self, standings: PeriodStandings, period: Period, final_at: datetime, now: datetime) -> bool:
        """Store the final result of a period, once; returns whether this call did.

        Whoever dies before the last write has shown nothing: the next one begins anew.
        """
        generation = f"final-{uuid4().hex[:12]}"
        expires_at = int((final_at + FINAL_KEPT).timestamp())
        items, users = standing_items(standings, period, generation, expires_at)
        put_all(self._dynamodb, self._table, items)
        fields = {
            "generation": generation,
            "final_at": stamp(final_at),
            "closed_at": stamp(now),
            "users": users,
        }
        is_first = write_if(
            self._dynamodb.put_item,
            TableName=self._table,
            Item=encode_item({"board": FINALS, "part": period.name, "expires_at": expires_at, **fields}),
            ConditionExpression="attribute_not_exists(board)",
        )
        if not is_first:  # another process has closed it since this one looked
            keys = [{name: item[name] for name in ("board", "part")} for item in items]
            delete_all(self._dynamodb, self._table, keys)
        self._refresh.end()
        return is_first


def _result_from(item: Mapping[str, Any]) -> FinalResult:
    return FinalResult(
        period_named(item["part"]),
        item["generation"],
        unstamp(item["final_at"]),
        unstamp(item["closed_at"]),
        item["users"],
    )


class PeriodPages:
    """Reads standings page by page. A process keeps the pages that it has read: none of them changes.

    An erasure takes a name out of a page. Until the process ends, or reads many other pages, it still has the
    name: callers leave out the erased.
    """

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table
        self._kept: dict[tuple[str, str], Item | None] = {}

    def of(self, contest: Contest, source: BoardManifest | FinalResult) -> Pages:
        """Return the pages of a contest, in a snapshot or in a final result. It may have no rows."""
        board, generation = CONTEST + contest.key, source.generation
        first = self._item(board, part_of(generation, 0))
        if first is None:
            return Pages((), 0, lambda _: ())

        def read(page: int) -> list[Standing]:
            item = self._item(board, part_of(generation, page))
            return unpack_rows(item["data"]["B"]) if item else []

        return Pages(unpack_places(first["firsts"]["B"]), int(first["users"]["N"]), read)

    def _item(self, board: str, part: str) -> Item | None:
        key = (board, part)
        if key not in self._kept:
            names = {"board": board, "part": part}
            # The item that names the generation may have arrived at a replica before its pages.
            found = get_one(self._dynamodb, self._table, names, is_strong=False)
            found = found or get_one(self._dynamodb, self._table, names)
            if len(self._kept) >= PAGES_KEPT:
                self._kept.clear()
            self._kept[key] = found
        return self._kept[key]
