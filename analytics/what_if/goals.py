"""Streaks and achievements that a candidate adds, changes or drops: who has them, and who would have them.

Only these are worked out; of a book that changes none of them nothing is read that is not read anyway. The
folds are those of the nightly recompute (analytics/recompute). They go over the history as it is, by the
versions that there are; and over the history as it would be, by those that there would be (Timeline.told).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapters.platform.objects import Objects
from analytics.recompute.goal_columns import HistoryColumns, standings_of
from analytics.what_if.entry_columns import EntryColumns, Flags, JudgedEntries
from analytics.what_if.figures import Figures, GoalChange
from analytics.what_if.ledger_parts import Numbers
from analytics.what_if.one_user import OneUser
from analytics.what_if.runs import FIRST
from analytics.what_if.timeline import Ruling, Timeline
from analytics.what_if.user_settings import Todays, sent_properties
from rules.book.book import Book, Books
from rules.book.goal_rules import AchievementRule
from rules.book.point_rules import COUNTED
from rules.engagement.events import measures_of
from rules.engagement.streak import Cover

BEFORE, AFTER = "before", "after"
CELLS_MAX = 4_000_000  # users times days that are worked on at once: a matrix of them is 32 MB
ROWS_MAX = 100_000  # of users who are replayed one by one
DAY_SCHEMA = [("user_id", pa.string()), ("day", pa.int64()), ("points", pa.int64())]
HISTORY = pa.schema(
    [
        *DAY_SCHEMA,
        ("event_type", pa.string()),
        ("event_id", pa.string()),
        ("measures", pa.string()),
        ("is_counted", pa.bool_()),
    ]
)
CORRECTIONS = pa.schema(DAY_SCHEMA)
Kept = dict[tuple[str, str, str], tuple[int, int, int]]


@dataclass(slots=True)
class ReplayedRows:
    """Users who were replayed one by one, until there are enough of them."""

    events: list[dict[str, Any]] = field(default_factory=list)
    corrections: list[dict[str, Any]] = field(default_factory=list)
    covers: dict[str, Cover] = field(default_factory=dict)


class Goals:
    """The question of one candidate. now: which book is in force, and which date is today.

    kept: where the figures of each user go, by world, name and user: (current, longest, reached); None:
    nowhere.
    """

    def __init__(
        self, timeline: Timeline, now: datetime, todays: Todays, figures: Figures, kept: Kept | None
    ) -> None:
        self.timeline, self.now, self.todays, self._kept = timeline, now, todays, kept
        self._books = {BEFORE: timeline.real, AFTER: timeline.told}
        old, new = timeline.real_at(now), timeline.candidate
        figures.streaks = list(_streak_changes(old, new)) if new else []
        figures.achievements = list(_achievement_changes(old, new, figures.streaks)) if new else []
        changes = [*figures.streaks, *figures.achievements]
        # What a book lacks nobody has under it.
        self._changes = {
            world: [each for each in changes if _has_goal(books.at(now).book, each)]
            for world, books in self._books.items()
        }
        self._measured: dict[tuple[int | None, str], tuple[str, ...] | None] = {}
        self._replayed = ReplayedRows()

    @property
    def is_asked(self) -> bool:
        """Whether there is anything to work out."""
        return any(self._changes.values())

    @property
    def summed(self) -> set[str]:
        """The event types of which the versions that there would be sum a property."""
        books = [each.book for each in self._books[AFTER].versions] if self._changes[AFTER] else []
        return {kind for book in books for kind in book.event_types if book.measured(kind)}

    # ---- a part of the ledger

    def add(
        self,
        entries: EntryColumns,
        judged: JudgedEntries,
        points: tuple[Numbers, Numbers],
        replayed: Flags,
        covers: Callable[..., Mapping[int, Cover]],
    ) -> None:
        """Count the users of a part in, those who are replayed only as they are.

        points: what events, and corrections, would come to. covers: returns those of entries, by user.
        """
        table = entries.table
        ids = pa.array(entries.ids, pa.string())
        earns = pa.array(entries.earns)
        of_events = table.select(["event_type", "event_id", "measures"]).take(earns)
        was = pa.table(
            {
                "user_id": ids.take(pa.array(entries.earner)),
                "day": entries.earn("day"),
                "points": entries.earn("points"),
                "event_type": of_events["event_type"],
                "event_id": of_events["event_id"],
                "measures": of_events["measures"],
                "is_counted": ~entries.is_reversed,
            },
            schema=HISTORY,
        )
        corrector = entries.user[entries.corrects]
        taken = pa.table(
            {
                "user_id": ids.take(pa.array(corrector)),
                "day": entries.correction("day"),
                "points": entries.correction("points"),
            },
            schema=CORRECTIONS,
        )
        if self._changes[BEFORE]:
            self._count(
                BEFORE, history_of(was, taken), _by_name(covers(entries, is_after=False), entries.ids)
            )
        if not self._changes[AFTER]:
            return
        stays = ~replayed[entries.earner] & ~judged.is_refused
        measures = self._measures_of(
            was, judged, table["properties"].take(earns) if "properties" in table.column_names else None
        )
        would = was.set_column(2, "points", pa.array(points[0])).set_column(5, "measures", measures)
        left = taken.set_column(2, "points", pa.array(points[1])).filter(pa.array(~replayed[corrector]))
        after = history_of(would.filter(pa.array(stays)), left)
        self._count(AFTER, after, _by_name(covers(entries, is_after=True), entries.ids))

    def _measures_of(self, was: pa.Table, judged: JudgedEntries, sent: pa.ChunkedArray | None) -> pa.Array:
        """Return what each event would add."""
        known: dict[Any, str | None] = {}
        found = []
        texts = sent.to_pylist() if sent is not None else [None] * was.num_rows
        for key in zip(
            judged.place.tolist(),
            was["event_type"].to_pylist(),
            was["measures"].to_pylist(),
            texts,
            strict=True,
        ):
            if key not in known:
                known[key] = self._measures(judged.rulings[key[0]], *key[1:])
            found.append(known[key])
        return pa.array(found, pa.string())

    def _measures(self, ruling: Ruling, kind: str, was: str | None, sent: str | None) -> str | None:
        """Return what an event adds by a ruling. sent: its properties, None if they are not known.

        Then only what was measured when it was accepted can be told.
        """
        if not ruling.is_new:
            return was
        measured = self._measured_by(ruling.version, kind)
        if measured is None or not measured or sent is not None:
            return measures_of(_read_object(sent), measured)
        said = [
            each for each in (was or COUNTED).split(",") if each.partition("=")[0] in (COUNTED, *measured)
        ]
        return ",".join(said)

    def _measured_by(self, version: int | None, kind: str) -> tuple[str, ...] | None:
        if (version, kind) not in self._measured:
            candidate, real = self.timeline.candidate, self.timeline.real
            book = candidate if version is None else real.numbered(version).book
            self._measured[version, kind] = book.measured(kind) if book else None
        return self._measured[version, kind]

    # ---- those who are replayed

    def add_replayed(self, users: Iterable[OneUser], objects: Objects, names: set[str]) -> Iterator[OneUser]:
        """Yield users again, each counted in as it would be. names: of all of them."""
        is_asked = bool(self._changes[AFTER])
        sent = sent_properties(objects, names, self.summed) if is_asked else {}
        for user in users:
            if is_asked:
                self._note(user, sent.get(user.user_id, {}))
            yield user
        self._flush()

    def _note(self, user: OneUser, sent: Mapping[str, str]) -> None:
        rows = self._replayed
        for each in user.earned:
            if each.points is not None:
                at, kind = each.row["event_id"], each.row["event_type"]
                rows.events.append(
                    {
                        "user_id": user.user_id,
                        "day": (each.day - FIRST).days,
                        "points": each.points,
                        "event_type": kind,
                        "event_id": at,
                        "measures": self._measures(each.ruling, kind, each.row.get("measures"), sent.get(at)),
                        "is_counted": at not in user.reversed,
                    }
                )
        for draft in user.corrected:
            day = (date.fromisoformat(draft.activity_date or "") - FIRST).days
            rows.corrections.append({"user_id": user.user_id, "day": day, "points": draft.points})
        rows.covers[user.user_id] = user.cover
        if len(rows.events) > ROWS_MAX:
            self._flush()

    def _flush(self) -> None:
        rows, self._replayed = self._replayed, ReplayedRows()
        if not rows.events:
            return
        events = pa.Table.from_pylist(rows.events, HISTORY)
        self._count(
            AFTER, history_of(events, pa.Table.from_pylist(rows.corrections, CORRECTIONS)), rows.covers
        )

    # ---- the folds

    def _count(self, world: str, history: pa.Table, covers: Mapping[str, Cover]) -> None:
        """Count the users of a history in. It is gone through for some users at a time."""
        books, changes = self._books[world], self._changes[world]
        for some in _in_slices(history):
            for each in changes:
                if each.per is not None:
                    self._count_streak(world, each, some, books, covers)
            names = {each.name: each for each in changes if each.per is None}
            if names:
                found = HistoryColumns(some, books, covers).achieved(self.now, names)
                for user, name in zip(found["user_id"].to_pylist(), found["name"].to_pylist(), strict=True):
                    getattr(names[name], world).reached += 1
                    self._keep(world, name, user, (1, 1, 1))

    def _count_streak(
        self, world: str, each: GoalChange, history: pa.Table, books: Books, covers: Mapping[str, Cover]
    ) -> None:
        measured = history.filter(pc.not_equal(history["measures"], ""))
        if not measured.num_rows:
            return
        found = standings_of(each.name, measured, books, covers, self.todays.of)
        sums = getattr(each, world)
        sums.reached += len(found.ids)
        sums.current += int((found.current > 0).sum())
        sums.longest = max(sums.longest, int(found.longest.max(initial=0)))
        figures = zip(found.current.tolist(), found.longest.tolist(), found.reached.tolist(), strict=True)
        for user, of_user in zip(found.ids, figures, strict=True):
            self._keep(world, each.name, user, of_user)

    def _keep(self, world: str, name: str, user: str, figures: tuple[int, int, int]) -> None:
        if self._kept is not None:
            self._kept[world, name, user] = figures


def _streak_changes(old: Book, new: Book) -> Iterator[GoalChange]:
    for name in sorted(old.streaks.keys() | new.streaks.keys()):
        was, is_now = old.streaks.get(name), new.streaks.get(name)
        if was != is_now:
            per = (new.streaks.get(name) or old.streaks[name]).per
            yield GoalChange(name, _change(was, is_now), per.value)


def _achievement_changes(old: Book, new: Book, streaks: Sequence[GoalChange]) -> Iterator[GoalChange]:
    """Yield what differs by itself, or by a streak that a condition is of. The lake has no titles."""
    moved = {each.name for each in streaks}
    for name in sorted(old.achievements.keys() | new.achievements.keys()):
        was, is_now = (_without_title(book.achievements.get(name)) for book in (old, new))
        conditions = [one for each in (was, is_now) if each for one in each.conditions]
        if was != is_now or any(one.streak in moved for one in conditions):
            titled = new.achievements.get(name) or old.achievements[name]
            yield GoalChange(name, _change(was, is_now), title=titled.title)


def _without_title(rule: AchievementRule | None) -> AchievementRule | None:
    return rule and replace(rule, title="")


def _has_goal(book: Book, each: GoalChange) -> bool:
    return each.name in (book.achievements if each.per is None else book.streaks)


def _change(was: object, is_now: object) -> str:
    return "new" if was is None else "removed" if is_now is None else "changed"


def history_of(events: pa.Table, corrections: pa.Table) -> pa.Table:
    """Return the entries that HistoryColumns takes. events: HISTORY of this module.

    What was corrected of a date's points, and what reversed events have earned, counts with the date's first
    event.
    """
    counted = events.filter(events["is_counted"]).sort_by(
        [("user_id", "ascending"), ("day", "ascending"), ("event_id", "ascending")]
    )
    gone = events.filter(pc.invert(events["is_counted"])).select(CORRECTIONS.names)
    changes = (
        pa.concat_tables([gone, corrections]).group_by(["user_id", "day"]).aggregate([("points", "sum")])
    )
    change = {(row["user_id"], row["day"]): row["points_sum"] for row in changes.to_pylist()}
    points = np.array(counted["points"].to_numpy(), np.int64)
    if change and len(points):
        users, days = counted["user_id"].to_pylist(), counted["day"].to_pylist()
        for at, key in enumerate(zip(users, days, strict=True)):
            if key in change:
                points[at] += change.pop(key)
    return pa.table(
        {
            **{name: counted[name] for name in ("user_id", "day", "event_type", "event_id")},
            "measures": counted["measures"].fill_null(""),
            "points": points,
            "events": np.ones(len(points), np.int64),
        }
    )


def _in_slices(history: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows of some users after those of others: a matrix of users and days fits into memory."""
    if not history.num_rows:
        return
    days = pc.min_max(history["day"]).as_py()
    users = max(1, CELLS_MAX // (days["max"] - days["min"] + 1))
    coded = history["user_id"].combine_chunks().dictionary_encode()
    starts = np.searchsorted(coded.indices.to_numpy(), np.arange(0, len(coded.dictionary), users))
    for first, end in zip(starts, [*starts[1:], history.num_rows], strict=True):
        yield history.slice(first, end - first)


def _by_name(covers: Mapping[int, Cover], ids: Sequence[str]) -> dict[str, Cover]:
    return {ids[user]: cover for user, cover in covers.items()}


def _read_object(text: str | None) -> Any:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
