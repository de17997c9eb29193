"""Reads the lake's rows from before an instant, one user after the other, for a restore (rule 21).

The restorers of this folder call `LakeBefore`, whose methods have a statement of DuckDB each. Users' rows are
of four entities, which are read side by side, each in the order of users. So only one user's rows are in
memory. DuckDB sorts on disk if the rows do not fit into memory.

Parameters of the statements. $until: the instant of the restore. $since: events from before it have left
their table. A part's statements have further instants.
"""

from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Any

from adapters.platform.objects import Objects
from analytics.lake.curated_files import cursor, table_of
from rules.engagement.events import RETENTION
from rules.lake.residues import PREFIX as RESIDUE_PREFIX
from rules.lake.table_items import APART
from rules.smoke_names import PATTERN, is_smoke

# ruff: noqa: S608 (names of tables are our own)
ROWS_AT_ONCE = 2_000
READERS = 4  # files of an entity that are fetched at once
Row = dict[str, Any]
USERS_ENTITIES = ("ledger", "events", "streaks", "table_items")
# Of table_items, without those of tables that a part restores by itself.
NOT_APART = "".join(f" AND store <> '{store}'" for store in APART)
# Of each item, the newest row counts.
NEWEST_ITEM = "QUALIFY row_number() OVER (PARTITION BY store, place ORDER BY version DESC) = 1"


def smoke_condition(column: str) -> str:
    """Return the condition that a smoke test made what has the name in a column."""
    return f"regexp_full_match({column}, '{PATTERN}')"


@dataclass(slots=True)
class LakeRows:
    """One user's rows, as curated files have them."""

    user_id: str
    ledger: list[Row] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)
    streaks: list[Row] = field(default_factory=list)
    items: dict[str, list[Row]] = field(default_factory=dict)  # of other tables, by name in the template

    @classmethod
    def of(cls, user_id: str, rows: Iterable[Row]) -> "LakeRows":
        """Return a user's rows of all four entities: `entity` says where each belongs."""
        user = cls(user_id)
        rows_by_entity = {"ledger": user.ledger, "events": user.events, "streaks": user.streaks}
        for row in rows:
            if row["entity"] == "table_items":
                user.items.setdefault(row["store"], []).append(row)
            else:
                rows_by_entity[row["entity"]].append(row)
        return user


@dataclass(frozen=True, slots=True)
class LakeBefore:
    """The lake before an instant."""

    objects: Objects
    until: datetime  # a whole second
    now: datetime
    retention: timedelta = RETENTION  # events that are older than this are left out

    def users(self) -> Generator[LakeRows]:
        """Yield the rows of each user whom the lake knows, in the order of users.

        What a smoke test has made was removed after it, and does not come back; nor do its leads, questions
        and phones.
        """
        # Each statement has its rows in the order of `person`, the user. Rows of erased persons (residues)
        # bring nobody back.
        ledger = f"""SELECT *, account_id AS person, 'ledger' AS entity FROM ledger
            WHERE created_at < $until AND NOT starts_with(account_id, '{RESIDUE_PREFIX}')
            ORDER BY account_id, seq"""
        events = f"""SELECT *, user_id AS person, 'events' AS entity FROM events
            WHERE created_at < $until AND created_at > $since
            AND NOT starts_with(user_id, '{RESIDUE_PREFIX}')
            QUALIFY row_number() OVER (PARTITION BY user_id, event_id ORDER BY version DESC) = 1
            ORDER BY user_id, event_id"""
        profiles = f"""SELECT *, user_id AS person, 'streaks' AS entity FROM streaks
            WHERE updated_at < $until AND NOT starts_with(user_id, '{RESIDUE_PREFIX}')
            QUALIFY row_number() OVER (PARTITION BY user_id ORDER BY version DESC) = 1
            ORDER BY user_id"""
        # No row is a residue here, because an erasure deletes the rows of table_items.
        items = f"""SELECT *, user_id AS person, 'table_items' AS entity FROM table_items
            WHERE changed_at < $until AND user_id IS NOT NULL{NOT_APART}
            {NEWEST_ITEM} ORDER BY user_id, store, place"""
        statements = zip((ledger, events, profiles, items), USERS_ENTITIES, strict=True)
        with ExitStack() as stack:
            streams = [stack.enter_context(closing(self.rows(sql, entity))) for sql, entity in statements]
            for user_id, rows in groupby(merge(*streams, key=itemgetter("person")), key=itemgetter("person")):
                if not is_smoke(user_id):
                    yield LakeRows.of(user_id, rows)

    def ownerless_items(self) -> list[Row]:
        """Return the rows of items that belong to no user.

        Tombstones of a later time are among them, too: a restore brings no erased person back.
        """
        sql = f"""SELECT * FROM table_items
            WHERE user_id IS NULL AND (changed_at < $until OR store = 'Erasures'){NOT_APART}
            {NEWEST_ITEM} ORDER BY store, place"""
        return list(self.rows(sql, "table_items"))

    def later(self) -> Mapping[str, int]:
        """Return how many entries and profiles of the instant or later the lake has."""
        counts = {}
        for entity, time in {"ledger": "created_at", "streaks": "updated_at"}.items():
            sql = f"SELECT count(*) AS row_count FROM {entity} WHERE {time} >= $until"
            (row,) = self.rows(sql, entity)
            counts[entity] = row["row_count"]
        return counts

    def rows(self, sql: str, *entities: str, **instants: datetime) -> Generator[Row]:
        """Yield the rows of a statement that reads some entities. instants: further parameters."""
        known = {"until": self.until, "since": self.now - self.retention, **instants}
        values = {name: instant for name, instant in known.items() if f"${name}" in sql}
        with ExitStack() as stack:
            # Each statement has a connection of its own, because a connection has one result at a time.
            db = stack.enter_context(cursor())
            for entity in entities:
                stack.enter_context(table_of(db, entity, self.objects, entity, READERS))
            reader = db.sql(sql, params=values).to_arrow_reader(ROWS_AT_ONCE)
            stack.callback(reader.close)  # an open result would keep the view from being dropped
            for batch in reader:
                yield from batch.to_pylist()
