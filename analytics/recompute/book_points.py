"""What users' events earn by the book of rules, recomputed in columns from the curated lake.

Twin of sql/models/facts/user_point_weeks.sql: the same rows, from the files alone. It reads the whole ledger
and all events, and so does `recompute --everybody`. A night does not. It judges the accounts that it looks at
(rules.engagement.points), and in SQL what was loaded.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapters.book import FIRST, shipped_version
from adapters.platform.objects import Objects
from analytics.lake import curated_files
from analytics.lake.curated_files import connect, query, table_of
from analytics.recompute.ledger_totals import EARNED
from rules.book.book import Books, EventType, Version
from rules.book.point_rules import Period
from rules.engagement.ledger import EntryKind
from rules.lake.entities import RULES
from rules.lake.rule_entities import book_of

# All versions of the book of rules, as the curated lake has them.


COLUMNS = tuple(each.name for each in RULES.fields)


def lake_books(objects: Objects) -> Books:
    """Return the published versions; the shipped book is version 1 while the lake has no version 1.

    A book is without contracts, freezes and pauses: from these no points follow.
    """
    rows: dict[int, dict[str, dict[str, Any]]] = defaultdict(dict)
    for batch in curated_files.reader(objects, RULES.name, COLUMNS):
        for row in batch.to_pylist():
            rows[row["version"]][row["item"]] = row
    versions = [_version(number, list(items.values())) for number, items in rows.items()]
    return Books(versions if FIRST in rows else [shipped_version(), *versions])


def _version(number: int, rows: Sequence[dict[str, Any]]) -> Version:
    first = rows[0]
    return Version(
        number,
        first["effective_at"],
        partial(book_of, rows),
        first["published_at"],
        first["author"],
        first["note"],
    )


Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

# An entry whose event is not here (yet) counts as the ledger has it.
ENTRIES = f"""
WITH gone AS (
  SELECT DISTINCT account_id, event_id FROM ledger
  WHERE kind = '{EntryKind.CLAWBACK}' AND event_id IS NOT NULL
)
SELECT l.account_id AS user_id, l.event_type, datediff('day', DATE '1970-01-01', l.activity_date) AS day,
  l.points, l.kind = '{EntryKind.EARN}' AS is_event, is_event AND gone.event_id IS NULL AS is_counted,
  is_counted AND e.event_id IS NULL AS is_unmatched, l.rules_version AS judged_by,
  epoch_us(try_strptime(left(l.event_id, 26), '%Y-%m-%dT%H:%M:%S.%f')) AS occurred_us,
  if(e.event_id IS NULL, l.points, e.points_awarded) AS event_points,
  if(e.event_id IS NULL, l.cap, e.cap) AS cap,
  if(e.event_id IS NULL, l.rules_version, e.rules_version) AS version
FROM ledger AS l LEFT JOIN events AS e ON e.user_id = l.account_id AND e.event_id = l.event_id
  LEFT JOIN gone ON gone.account_id = l.account_id AND gone.event_id = l.event_id
WHERE l.{EARNED} AND l.activity_date IS NOT NULL ORDER BY l.account_id
"""  # noqa: S608 (no input)
UNLIMITED = 1 << 60
DAY, WEEK = 1, 2
THURSDAY = 3  # 1970-01-01 was one, the first weekday being Monday
PERIODS = {Period.DAY: DAY, Period.WEEK: WEEK}


@dataclass(slots=True)
class Worth:
    """What each entry is worth: its points, the cap that they are under, and the cap's period."""

    points: Numbers
    limit: Numbers
    per: Numbers


def recomputed_points(objects: Objects) -> pa.Table:
    """Return a row for each user and week with EARN entries, by user and week.

    Columns: user_id, week_start, entries, unmatched_entries, points_by_book, points_by_events,
    points_in_ledger. In a sound system the last three are equal.
    """
    db = connect()
    with table_of(db, "ledger", objects, "ledger"), table_of(db, "events", objects, "events"):
        return points_of_book(query(db, ENTRIES), lake_books(objects))


def points_of_book(entries: pa.Table, books: Books) -> pa.Table:
    """Return the rows of recomputed_points. entries: what the query ENTRIES gives."""
    user_ids = entries["user_id"].combine_chunks().dictionary_encode()
    day = _numbers(entries["day"])
    week = day - (day + THURSDAY) % 7
    weeks, row = np.unique(_numbers(user_ids.indices) * (1 << 24) + week + (1 << 23), return_inverse=True)
    kinds = entries["event_type"].combine_chunks().dictionary_encode()
    is_counted = _numbers(entries["is_counted"]).astype(bool)
    anew = _versions_anew(entries, kinds, books)
    stored = _counted_worth(_stored_worth(entries), is_counted)
    priced = _counted_worth(_worth_by_book(entries, kinds, stored, books, anew), is_counted)
    stored = _mixed_worth(stored, priced, anew > 0)

    def earned(worth: Worth) -> Numbers:
        period = np.where(worth.per == DAY, day, week)
        groups, first = _capped_points((row, _numbers(kinds.indices), worth.per, period), worth)
        return _sums_of(first, groups, len(weeks))

    return pa.table(
        {
            "user_id": user_ids.dictionary.take(pa.array(weeks >> 24)),
            "week_start": pa.array((weeks & ((1 << 24) - 1)) - (1 << 23), pa.int32()).cast(pa.date32()),
            "entries": _sums_of(row, _numbers(entries["is_event"]), len(weeks)),
            "unmatched_entries": _sums_of(row, _numbers(entries["is_unmatched"]), len(weeks)),
            "points_by_book": earned(priced),
            "points_by_events": earned(stored),
            "points_in_ledger": _sums_of(row, _numbers(entries["points"]), len(weeks)),
        }
    )


def differing_weeks(weeks: pa.Table) -> list[tuple[str, date, int, int, int]]:
    """Return the rows of recomputed_points in which the three sums are not equal: user, week, and these."""
    book, events, ledger = (
        _numbers(weeks[name]) for name in ("points_by_book", "points_by_events", "points_in_ledger")
    )
    names = ("user_id", "week_start", "points_by_book", "points_by_events", "points_in_ledger")
    found = weeks.filter(pa.array((book != ledger) | (events != ledger)))
    return [tuple(each[name] for name in names) for each in found.to_pylist()]


def _stored_worth(entries: pa.Table) -> Worth:
    """Return what the events themselves say."""
    points = _numbers(entries["event_points"])
    caps = entries["cap"].combine_chunks().dictionary_encode()
    known = [_cap(each) for each in caps.dictionary.to_pylist()] + [(UNLIMITED, 0)]
    place = _numbers(caps.indices, absent=len(known) - 1)
    limits, pers = np.array(known, np.int64).T
    return Worth(points, limits[place], pers[place])


def _cap(text: str) -> tuple[int, int]:
    points, _, per = text.partition("/")
    return int(points), PERIODS[Period(per)]


def _counted_worth(worth: Worth, is_counted: Flags) -> Worth:
    """Return what entries are worth whose events count: those that were reversed are worth nothing."""
    return Worth(
        np.where(is_counted, worth.points, 0),
        np.where(is_counted, worth.limit, UNLIMITED),
        np.where(is_counted, worth.per, 0),
    )


def _mixed_worth(worth: Worth, other: Worth, is_other: Flags) -> Worth:
    return Worth(
        np.where(is_other, other.points, worth.points),
        np.where(is_other, other.limit, worth.limit),
        np.where(is_other, other.per, worth.per),
    )


def _versions_anew(entries: pa.Table, kinds: pa.DictionaryArray, books: Books) -> Numbers:
    """Return the number of the version that judges each entry's event anew; 0 where none does."""
    judged_by, occurred = _numbers(entries["judged_by"]), _numbers(entries["occurred_us"], absent=-1)
    names, kind = kinds.dictionary.to_pylist(), _numbers(kinds.indices)
    anew = np.zeros(len(kind), np.int64)
    for version in (each for each in books.versions if each.is_retroactive):
        since, until = (_micros(each) for each in books.in_force(version))
        known = np.array([name in version.book.event_types for name in names], bool)
        is_in_force = (occurred >= since) & (occurred < until) & (judged_by > 0)
        anew[is_in_force & known[kind] & (judged_by < version.number)] = version.number
    return anew


def _micros(instant: datetime | None) -> int:
    return UNLIMITED if instant is None else round(instant.timestamp() * 1_000_000)


def _worth_by_book(
    entries: pa.Table, kinds: pa.DictionaryArray, stored: Worth, books: Books, anew: Numbers
) -> Worth:
    """Return what the book says. A version that is not here (yet) cannot judge: what events store counts."""
    worth = Worth(stored.points.copy(), stored.limit.copy(), stored.per.copy())
    version, kind = _numbers(entries["version"], absent=0), _numbers(kinds.indices)
    version = np.where(anew > 0, anew, version)
    occurred = _numbers(entries["occurred_us"], absent=-1)
    for number, name, rule, chosen in _judged_entries(version, kind, kinds.dictionary.to_pylist(), books):
        at = np.flatnonzero(chosen)
        factor = np.ones(len(at), np.int64)
        for boost in books.numbered(number).book.boosts:
            if not boost.event_types or name in boost.event_types:
                since, until = (round(each.timestamp() * 1_000_000) for each in (boost.since, boost.until))
                is_boosted = (occurred[at] >= since) & (occurred[at] < until)
                factor = np.where(is_boosted, np.maximum(factor, boost.factor), factor)
        worth.points[at] = rule.points * factor
        if rule.cap_events is not None:
            worth.limit[at], worth.per[at] = rule.cap_events * rule.points * factor, PERIODS[rule.per]
        elif rule.cap_points is not None:
            worth.limit[at], worth.per[at] = rule.cap_points, PERIODS[rule.per]
        else:
            worth.limit[at], worth.per[at] = UNLIMITED, 0
    return worth


def _judged_entries(
    version: Numbers, kind: Numbers, names: list[str], books: Books
) -> Iterator[tuple[int, str, EventType, Flags]]:
    """Yield each version and type that the book knows, and which entries they judge."""
    known = {each.number for each in books.versions}
    for number, code in np.unique(np.stack([version, kind]), axis=1).T.tolist():
        name = names[code]
        if number in known and (rule := books.numbered(number).book.event_types.get(name)):
            yield number, name, rule, (version == number) & (kind == code)


def _capped_points(keys: tuple[Numbers, ...], worth: Worth) -> tuple[Numbers, Numbers]:
    """Return what each group of entries earns under its caps, and the group's first key.

    keys: entries that are equal in all of them are a group: a type's events of a user in one period. Each cap
    binds all that have it or a lower one (rules/book/point_rules.py): so a group earns at most
    a cap, and what those
    with higher ones have; and at most all.
    """
    order = np.lexsort((worth.limit, *reversed(keys)))
    sorted_keys = np.stack([each[order] for each in keys])
    if not len(order):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    is_first = np.append(True, (sorted_keys[:, 1:] != sorted_keys[:, :-1]).any(axis=0))
    starts = np.flatnonzero(is_first)
    sums = np.cumsum(worth.points[order])
    ends = np.append(starts[1:], len(order)) - 1
    higher = np.repeat(sums[ends], np.diff(np.append(starts, len(order)))) - sums
    allowed = np.minimum.reduceat(worth.limit[order] + higher, starts)
    every = np.add.reduceat(worth.points[order], starts)
    return np.minimum(allowed, every), sorted_keys[0][starts]


def _sums_of(places: Numbers, values: Numbers, size: int) -> Numbers:
    sums = np.zeros(size, np.int64)
    np.add.at(sums, places, values)
    return sums


def _numbers(column: pa.ChunkedArray | pa.Array, absent: int = 0) -> Numbers:
    found = column.cast(pa.int64()).fill_null(absent).to_numpy(zero_copy_only=False)
    return np.asarray(found, np.int64)
