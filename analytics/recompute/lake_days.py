"""What the curated ledger says DailyActivity must hold: one signature for each day of each user.

A signature and its key take eight bytes each, so all days of a long history fit into memory.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapters.platform.objects import Objects
from analytics.lake import curated_files, layout
from analytics.lake.curated_files import STAMP, arrow_table, connect, query
from analytics.recompute.ledger_totals import EARNED
from analytics.recompute.user_shares import ALL, UserShare
from rules.engagement.account_state import Day
from rules.engagement.ledger import EntryKind

COLUMNS = (
    *("account_id", "created_at", "kind", "points", "event_id", "event_type", "activity_date"),
    *("cap", "is_passive", "expires_on", "measures"),
)
EPOCH = date(1970, 1, 1)
DAY_BITS = 24
DAY_ZERO = 1 << 23  # added to a day's number, so that days before 1970 are positive too
Flags = NDArray[np.bool_]

# Twin of rules.engagement.account.apply_to_days. `text` must be what `signature` makes of the same day.
SIGNATURES = f"""
WITH parts AS MATERIALIZED (
  SELECT account_id, activity_date, concat_ws(' ', coalesce(event_type, ''), cap) AS event_type, expires_on,
    measures, count(*) FILTER (kind = '{EntryKind.EARN}') AS events,
    count(*) FILTER (kind = '{EntryKind.EARN}' AND is_passive) AS passive,
    count(*) FILTER (kind = '{EntryKind.CLAWBACK}') AS reversed,
    count(*) FILTER (kind = '{EntryKind.CLAWBACK}' AND is_passive) AS reversed_passive, sum(points) AS points,
    min(event_id) FILTER (kind = '{EntryKind.EARN}' AND is_passive IS NOT TRUE) AS active_id,
    min(event_id) FILTER (kind = '{EntryKind.EARN}') AS event_id,
    max(event_id) FILTER (kind = '{EntryKind.EARN}' AND is_passive IS NOT TRUE) AS last_active_id,
    max(event_id) FILTER (kind = '{EntryKind.EARN}') AS last_id,
    min(created_at) AS first, max(created_at) AS last
  FROM ledger
  WHERE {EARNED} AND activity_date BETWEEN $since AND $until
    AND (event_id IS NOT NULL OR kind = '{EntryKind.RERATE}')
  GROUP BY ALL
), types AS (
  SELECT account_id, activity_date, string_agg(event_type || ':' || points, ',' ORDER BY event_type) AS types
  FROM (SELECT account_id, activity_date, event_type, sum(points) AS points FROM parts GROUP BY ALL)
  GROUP BY ALL
), lots AS (
  SELECT account_id, activity_date, string_agg(expires_on || ':' || points, ',' ORDER BY expires_on) AS lots
  FROM (
    SELECT account_id, activity_date, expires_on, sum(points) AS points FROM parts
    WHERE expires_on IS NOT NULL GROUP BY ALL
  ) GROUP BY ALL
), measured AS (
  SELECT account_id, activity_date, split_part(event_type, ' ', 1) AS event_type,
    events - reversed AS events,
    unnest(string_split(measures, ',')) AS measure
  FROM parts
), sums AS (
  SELECT account_id, activity_date, string_agg(name || ':' || amount, ',' ORDER BY name) AS summed
  FROM (
    SELECT account_id, activity_date,
      concat_ws(' ', event_type, nullif(split_part(measure, '=', 1), 'n')) AS name,
      sum(events * CASE measure WHEN 'n' THEN 1 ELSE split_part(measure, '=', 2)::BIGINT END) AS amount
    FROM measured GROUP BY ALL
  ) GROUP BY ALL
), days AS (
  SELECT account_id, activity_date, concat_ws('|', sum(events) - sum(reversed),
    sum(passive) - sum(reversed_passive), sum(points), coalesce(min(active_id), min(event_id)),
    coalesce(max(last_active_id), max(last_id)),
    strftime(min(first)::TIMESTAMP, {STAMP}), strftime(max(last)::TIMESTAMP, {STAMP}),
    any_value(types), any_value(lots),
    'reversed ' || nullif(sum(reversed) - sum(reversed_passive), 0), '#' || any_value(summed)) AS text
  FROM parts JOIN types USING (account_id, activity_date) LEFT JOIN lots USING (account_id, activity_date)
  LEFT JOIN sums USING (account_id, activity_date)
  GROUP BY account_id, activity_date
)
SELECT account_id AS user_id, activity_date, md5_number_lower(text) AS signature FROM days
"""  # noqa: S608 (no input)
TOUCHED = f"""
SELECT DISTINCT account_id, activity_date FROM entries
WHERE {EARNED} AND created_at >= $since AND activity_date IS NOT NULL
"""  # noqa: S608 (no input)
OF_CHANGED = "CREATE VIEW ledger AS FROM entries SEMI JOIN changed USING (account_id, activity_date)"
# Events arrive up to 72 hours late; the zones add a day, and so does an entry that waits for its account. Who
# has later ones (rule 16, backfills) is looked at closely.
EARNED_WITHIN = timedelta(days=5)


def _entries(objects: Objects, since: date, share: UserShare) -> pa.RecordBatchReader:
    """Return the entries that can be of an activity date or later: a zone may be a day ahead of UTC."""
    first = (since - timedelta(days=1) if since > date.min else since).isoformat()
    files = layout.curated_files(objects, "ledger", first)
    return curated_files.reader(objects, "ledger", COLUMNS, files=files, keep=share.rows_of("account_id"))


def signature(day: Day) -> int:
    """Return a hash of a day's content. Days with the same content have the same signature."""
    types = ",".join(f"{kind}:{points}" for kind, points in sorted(day.points_by_cap.items()))
    lots = ",".join(f"{on}:{points}" for on, points in sorted(day.lots.items()))
    measures = ",".join(f"{name}:{amount}" for name, amount in sorted(day.measures.items()))
    text = "|".join(
        (
            *(str(day.events_count), str(day.passive_events), str(day.points_earned), day.first_event_id),
            *(day.last_event_id, day.created_at, day.ledger_head, types),
            *([lots] if lots else []),
            *([f"reversed {day.reversed_events}"] if day.reversed_events else []),
            *([f"#{measures}"] if measures else []),
        )
    )
    return int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[8:], "little")


@dataclass(frozen=True, slots=True)
class LakeDays:
    """The days of a range of dates, sorted by key."""

    ids: pa.StringArray
    places: dict[str, int]
    order: NDArray[np.int64]
    signatures: NDArray[np.uint64]

    @classmethod
    def read(
        cls, objects: Objects, since: date = date.min, until: date = date.max, share: UserShare = ALL
    ) -> "LakeDays":
        """Read the days of a share's users from one date to another, both included."""
        with arrow_table(db := connect(), "ledger", _entries(objects, since, share)):
            return cls._of(query(db, SIGNATURES, {"since": since, "until": until}))

    @classmethod
    def touched(
        cls, objects: Objects, since: datetime, share: UserShare = ALL
    ) -> "tuple[LakeDays, set[str]]":
        """Read the days of a share's users that entries of an instant or later have changed.

        Returns these days; and the users who have earned for a date so long ago that other entries of that
        date may lie in partitions that this does not read.
        """
        oldest = since.date() - EARNED_WITHIN
        with arrow_table(db := connect(), "read", _entries(objects, oldest, share)):
            db.execute("CREATE TABLE entries AS FROM read")
        changed = query(db, TOUCHED, {"since": since})
        is_old = pc.less(changed["activity_date"], oldest)
        long_ago, recent = changed.filter(is_old), changed.filter(pc.invert(is_old))
        with arrow_table(db, "changed", recent):
            db.execute(OF_CHANGED)
            found = query(db, SIGNATURES, {"since": oldest, "until": date.max})
        return cls._of(found), set(long_ago["account_id"].to_pylist())

    @classmethod
    def _of(cls, found: pa.Table) -> "LakeDays":
        users = found["user_id"].combine_chunks().dictionary_encode()
        codes = users.indices.to_numpy().astype(np.int64)
        days = found["activity_date"].cast(pa.int32()).to_numpy()
        keys = codes << DAY_BITS | days.astype(np.int64) + DAY_ZERO
        order = np.argsort(keys)
        ids = users.dictionary
        places = {user: place for place, user in enumerate(ids.to_pylist())}
        signatures = found["signature"].to_numpy()[order]
        return cls(ids, places, keys[order], signatures)

    def place(self, user_id: str, when: str) -> int | None:
        """Return a day's place among these; None if the curated ledger has no entry of that user and date."""
        try:
            code = self.places[user_id]
            day = (date.fromisoformat(when) - EPOCH).days + DAY_ZERO
        except (KeyError, ValueError):
            return None
        key = code << DAY_BITS | day
        place = int(np.searchsorted(self.order, key))
        return place if place < len(self.order) and self.order[place] == key else None

    def signature(self, place: int) -> int:
        """Return the signature of the day at a place."""
        return int(self.signatures[place])

    def unseen(self) -> Flags:
        """Return one flag for each day, all of them set."""
        return np.ones(len(self.order), np.bool_)

    def users(self, flags: Flags) -> set[str]:
        """Return the users of the days whose flag is set."""
        codes = np.unique(self.order[flags] >> DAY_BITS)
        return set(self.ids.take(pa.array(codes)).to_pylist())

    def table_keys(self) -> Iterator[dict[str, str]]:
        """Yield each day's key in DailyActivity."""
        for key in self.order.tolist():
            when = EPOCH + timedelta(days=(key & (1 << DAY_BITS) - 1) - DAY_ZERO)
            yield {"user_id": self.ids[key >> DAY_BITS].as_py(), "activity_date": when.isoformat()}
