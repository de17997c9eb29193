"""Snapshots of the leaderboards, in the table Boards.

| board | part | holds |
|---|---|---|
| manifest | newest | which generation is the newest, of when it is, and where to look for a score |
| points#europe | GENERATION#top | the best rows of a region, by points alone |
| points#europe | GENERATION#0 | the highest scores, and how many users have each; then 1, 2, ... |

A generation is visible as soon as the manifest names it, and then all of its parts are there. Readers take
all parts from one generation. So they never see a mixture, and two builders at once do no harm. An older
snapshot never replaces a newer one. Generations expire after a day.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from adapters.platform.items import Item, item
from adapters.platform.tables import Refresh, put_all
from rules.days import stamp, unstamp
from rules.engagement.boards import (
    Standing,
    Standings,
    chunk_of,
    count_above,
    pack_index,
    pack_rows,
    unpack_rows,
)

KEPT = timedelta(days=1)
MANIFEST = item({"board": "manifest", "part": "newest"})
# So long a process answers without looking for a newer generation.
FRESH_SECONDS = 30


@dataclass(frozen=True, slots=True)
class BoardManifest:
    """What the manifest says. index: by "board#region", the packed first scores of its chunks."""

    generation: str
    as_of: datetime
    users: int
    expires_at: int
    index: dict[str, bytes]


class BoardSnapshots:
    """The newest snapshot, as one process sees it. It keeps what it has read of a generation."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table
        self._manifest: BoardManifest | None = None
        self._refresh = Refresh()
        self._parts: dict[tuple[str, str], bytes] = {}

    def newest(self, now: datetime) -> BoardManifest | None:
        """Return the newest snapshot's manifest, at most half a minute old; None if there is no snapshot."""
        if self._manifest is None or self._refresh.is_over:
            asked_at = time.monotonic()
            self._look()
            self._refresh.renew(asked_at, FRESH_SECONDS)
        held = self._manifest
        return held if held and held.expires_at > now.timestamp() else None

    def _look(self) -> None:
        """Take the stored manifest, unless a replica has an older one than we have."""
        found = self._get(MANIFEST)
        manifest = _manifest_from(found) if found else None
        if manifest and (self._manifest is None or manifest.as_of > self._manifest.as_of):
            self._manifest, self._parts = manifest, {}

    def top(self, region: str, now: datetime) -> tuple[datetime, list[Standing]] | None:
        """Return the snapshot's instant and its best rows by points; None if there is no snapshot."""
        manifest = self.newest(now)
        if manifest is None:
            return None
        if f"points#{region}" not in manifest.index:
            return manifest.as_of, []
        data = self._part(manifest, f"points#{region}", "top")
        return data and (manifest.as_of, unpack_rows(data))

    def count_above(self, board: str, region: str, score: int, now: datetime) -> tuple[datetime, int] | None:
        """Return the snapshot's instant and how many had a higher score; None if there is no snapshot."""
        manifest = self.newest(now)
        if manifest is None:
            return None
        number = chunk_of(manifest.index.get(f"{board}#{region}", b""), score)
        if number is None:
            return manifest.as_of, 0
        data = self._part(manifest, f"{board}#{region}", str(number))
        return data and (manifest.as_of, count_above(data, score))

    def _part(self, manifest: BoardManifest, board: str, name: str) -> Any:
        """Return a part's data; None if it is gone, which only somebody's hand could do."""
        if (board, name) not in self._parts:
            key = item({"board": board, "part": f"{manifest.generation}#{name}"})
            # The manifest may have arrived at a replica before its parts.
            found = self._get(key) or self._get(key, ConsistentRead=True)
            if found is None:
                return None
            self._parts[board, name] = found["data"]["B"]
        return self._parts[board, name]

    def _get(self, key: Item, **options: Any) -> Item | None:
        found: Item | None = self._dynamodb.get_item(TableName=self._table, Key=key, **options).get("Item")
        return found


def write_snapshot(dynamodb: Any, table: str, counted: Standings) -> bool:
    """Write a generation, then the manifest; returns whether it is the newest now.

    Raises Unprocessed; then nobody sees what has been written.
    """
    as_of = stamp(counted.as_of)
    generation = f"{as_of}-{uuid4().hex[:8]}"
    expires_at = int((counted.as_of + KEPT).timestamp())
    index: dict[str, bytes] = {}
    put_all(dynamodb, table, [*_parts_of(counted, generation, expires_at, index)])
    manifest = {**MANIFEST, "index": {"M": {name: {"B": data} for name, data in index.items()}}}
    told = {"generation": generation, "as_of": as_of, "users": counted.users, "expires_at": expires_at}
    try:
        dynamodb.put_item(
            TableName=table,
            Item=manifest | item(told),
            ConditionExpression="attribute_not_exists(board) OR as_of < :as_of",
            ExpressionAttributeValues=item({":as_of": as_of}),
        )
    except dynamodb.exceptions.ConditionalCheckFailedException:
        return False
    return True


def _parts_of(
    counted: Standings, generation: str, expires_at: int, index: dict[str, bytes]
) -> Iterator[Item]:
    """Yield all parts of a generation; fills the index."""
    for (board, region), rows, chunks in counted.boards():
        name = f"{board}#{region}"
        index[name] = pack_index(chunks)
        parts = {str(number): each.data for number, each in enumerate(chunks)}
        parts |= {"top": pack_rows(rows)} if rows else {}
        for part, data in parts.items():
            key = item({"board": name, "part": f"{generation}#{part}", "expires_at": expires_at})
            yield {**key, "data": {"B": data}}


def _manifest_from(found: Item) -> BoardManifest:
    return BoardManifest(
        generation=found["generation"]["S"],
        as_of=unstamp(found["as_of"]["S"]),
        users=int(found["users"]["N"]),
        expires_at=int(found["expires_at"]["N"]),
        index={name: each["B"] for name, each in found["index"]["M"].items()},
    )
