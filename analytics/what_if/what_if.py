"""What another book would have led to: for every user, as a fresh stack would show it after the same history.

The ledger is read once, and worked on in parts of whole users, in columns. Users whose answer depends on
more than sums are replayed one by one (one_user.py). Nothing is written but temporary files.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from adapters.platform.objects import Objects
from analytics.lake.curated_files import query, table_of
from analytics.what_if.figures import USERS, Figures, Impossible
from analytics.what_if.goals import Goals, Kept
from analytics.what_if.judged_part import PartJudge
from analytics.what_if.ledger_parts import ledger_parts, small_database
from analytics.what_if.one_user import EventOutcome, OneUser
from analytics.what_if.runs import FIRST, fold_user
from analytics.what_if.timeline import Timeline, real_books
from analytics.what_if.user_settings import (
    Refuses,
    UserSettings,
    broken_contracts,
    claims_of,
    doubtful_users,
    ledgers_of,
    pauses_left,
    user_settings,
)
from rules.book.book import Book, Books
from rules.book.point_rules import Cap
from rules.engagement.earnings import instant_of

# Why a user would gain or lose: by event type and cause, with dates.


@dataclass(slots=True)
class Reason:
    """What changes the points of some of a user's events. cause: in words. points: the change."""

    cause: str
    events: int
    points: int
    first: date
    last: date

    @property
    def text(self) -> str:
        """The reason as a line."""
        days = str(self.first) if self.first == self.last else f"{self.first} to {self.last}"
        events = "1 event" if self.events == 1 else f"{self.events} events"
        return f"{self.points:+,} points, {events}, {days}: {self.cause}"


def reasons(user: OneUser, timeline: Timeline) -> list[Reason]:
    """Return what changes a user's points, the largest change first."""
    found: dict[str, Reason] = {}
    for each in user.earned:
        change = (each.points or 0) - each.row["points"]
        if not change:
            continue
        cause = ": ".join(_cause(each, timeline))
        known = found.setdefault(cause, Reason(cause, 0, 0, each.day, each.day))
        known.events += 1
        known.points += change
        known.first, known.last = min(known.first, each.day), max(known.last, each.day)
    return sorted(found.values(), key=lambda each: (-abs(each.points), each.cause))


def other_reasons(user: OneUser, expired_before: int, now: datetime) -> Iterator[str]:
    """Yield what changes a user's balance and streak, beside the points of events.

    expired_before: how many points of the user have expired by now.
    """
    if (expired := user.expired(now)) != expired_before:
        yield f"{expired:,} points would have expired by now, in place of {expired_before:,}"
    was, then = user.corrected_before, sum(each.points for each in user.corrected)
    if was != then:
        yield f"{then:+,} points by reversed events and corrections, in place of {was:+,}"
    rows = [each.row for each in user.earned if each.row["event_id"] not in user.reversed]
    was_active = {row["activity_date"] for row in rows if not row["is_passive"]}
    active = set(user.active)
    for days, word in ((was_active - active, "no longer be"), (active - was_active, "be")):
        if days:
            span = str(min(days)) if len(days) == 1 else f"{min(days)} to {max(days)}"
            dates = "1 date" if len(days) == 1 else f"{len(days)} dates"
            yield f"{dates} would {word} active, {span}: which events keep a streak has changed"


def _cause(each: EventOutcome, timeline: Timeline) -> Iterator[str]:
    """Yield how the candidate's terms of an event differ from those that were."""
    row, ruling = each.row, each.ruling
    kind, occurred = row["event_type"], instant_of(row["event_id"])
    number = row["rules_version"]
    yield f"{kind}, judged by version {number}"
    if each.points is None:
        yield "breaks the contract: refused" if row.get("is_broken") else "is not in this book: refused"
        return
    before = next((v.book for v in timeline.real.versions if v.number == number), None)
    was, factor_was = _worth(before, kind, occurred)
    now = ruling.points
    changes = []
    if was is not None and now is not None and was * ruling.factor != now * factor_was:
        changes.append(f"{was // factor_was} -> {now // ruling.factor} points each")
    if factor_was != ruling.factor:
        changes.append(f"boost x{factor_was} -> x{ruling.factor}")
    caps = [cap.text if cap else "none" for cap in (Cap.of(row["cap"]), ruling.cap)]
    if ruling.points is not None and caps[0] != caps[1]:
        changes.append(f"cap {caps[0]} -> {caps[1]}")
    if each.day != row["activity_date"]:
        changes.append("counts for another date")
    yield "; ".join(changes) or "other events leave another part of its cap"


def _worth(book: Book | None, kind: str, occurred: datetime) -> tuple[int | None, int]:
    if book is None or kind not in book.event_types:
        return None, 1
    return book.points(kind, occurred), book.factor(kind, occurred)


TOP = 20
EXPIRIES = (
    "SELECT DISTINCT rules_version, expiry FROM events WHERE expiry IS NOT NULL AND rules_version IS NOT NULL"
)


def _refuses_nothing(contract: Any, properties: Any) -> bool:
    """Stand for a check of contracts where there is none."""
    return False


@dataclass(frozen=True, slots=True)
class WhatIfQuestion:
    """What is asked. book: the candidate, None for the versions that were in force (a check of oneself).

    since, until: when it is in force. now: until when points expire, and which date is today, in each user's
    zone. refuses: whether a contract refuses properties. keep_days: whether the points of each day, and each
    user's streaks and achievements that differ, are kept, too.
    """

    book: Book | None
    now: datetime
    since: datetime | None = None
    until: datetime | None = None
    refuses: Refuses = _refuses_nothing
    keep_days: bool = False


@dataclass(slots=True)
class WhatIfAnswer:
    """users: a row each (figures.USERS). top: who changes most, and why. days: points by user and day.

    goals: see analytics.what_if.goals.Goals.
    """

    asked: WhatIfQuestion
    users: pa.Table
    figures: Figures
    top: list[dict[str, Any]] = field(default_factory=list)
    days: dict[tuple[str, date], int] = field(default_factory=dict)
    goals: Kept = field(default_factory=dict)


class WhatIf:
    """One question to a lake."""

    def __init__(self, objects: Objects, asked: WhatIfQuestion) -> None:
        self._objects, self._asked, self.figures = objects, asked, Figures()
        self.timeline = Timeline(real_books(objects), asked.book, asked.since, asked.until)
        if asked.book and self.timeline.is_partial:
            self.timeline.expiries.update(_expiries(objects, self.timeline.real))
        self._settings, self._todays = user_settings(objects, asked.now)
        self._broken = broken_contracts(objects, asked.book, asked.refuses)
        self._doubtful = cache(lambda: doubtful_users(objects))
        self._days: dict[tuple[str, date], int] = {}
        self._kept: Kept = {}
        kept = self._kept if asked.keep_days else None
        self._goals = Goals(self.timeline, asked.now, self._todays, self.figures, kept)
        if self.timeline.changes_pauses:
            self._note_pauses()

    def _note_pauses(self) -> None:
        for user, known in self._settings.items():
            for first, last in pauses_left(known.pauses, self.timeline)[1]:
                why = f"it would have been one of too many dates up to {last}"
                self.figures.impossible.append(Impossible(user, "pause", first.isoformat(), 0, 0, why))

    def answer(self) -> WhatIfAnswer:
        """Work everything out."""
        tables, replayed = [], set[str]()
        for users, names, days in self._parts():
            tables.append(users)
            replayed |= names
            self._keep(days, names)
        told = self._goals.add_replayed(
            (each for _, each in self._replayed(replayed)), self._objects, replayed
        )
        rows = {each.user_id: self._row(each) for each in told}
        users = pa.concat_tables([USERS.empty_table(), *tables]).combine_chunks()
        users = _with_rows(users, rows).sort_by("user_id")
        return WhatIfAnswer(self._asked, users, self.figures, self._top(users), self._days, self._kept)

    def _parts(self) -> Iterator[tuple[pa.Table, set[str], Callable[[], pa.Table]]]:
        asked, known = self._asked, (self._settings, self._todays)
        judge = PartJudge(self.timeline, asked.now, *known, self._doubtful, self.figures, self._goals)
        summed = self._goals.summed if self._goals.is_asked else None
        with ledger_parts(self._objects, self.timeline.stamps, self._broken, summed) as parts:
            for part in parts:
                yield judge.judge(part)

    def _keep(self, days: Callable[[], pa.Table], left_out: set[str]) -> None:
        if self._asked.keep_days:
            for row in days().to_pylist():
                if row["user_id"] not in left_out:
                    self._days[row["user_id"], FIRST.fromordinal(FIRST.toordinal() + row["day"])] = row[
                        "points_sum"
                    ]

    # ---- one by one

    def _replayed(self, users: set[str]) -> Iterator[tuple[str, OneUser]]:
        places_anew = self._doubtful.cache_info().currsize > 0
        doubtful = {each for each in users if places_anew and self._is_doubtful(each)}
        claims = claims_of(self._objects, doubtful)
        broken = self._broken_events(users)
        for user, rows in ledgers_of(self._objects, users):
            known = self._settings.get(user) or UserSettings()
            for row in rows:
                row["is_broken"] = (user, row["event_id"]) in broken
            made = OneUser(
                user,
                self.timeline,
                pauses_left(known.pauses, self.timeline)[0],
                known.skipped,
                claims.get(user),
                known.opening,
            )
            yield user, made.replay(rows)

    def _is_doubtful(self, user: str) -> bool:
        return user in self._doubtful() or bool((self._settings.get(user) or UserSettings()).skipped)

    def _broken_events(self, users: set[str]) -> set[tuple[str, str]]:
        some = self._broken
        some = some.filter(pc.is_in(some["user_id"], pa.array(sorted(users), pa.string())))
        return {(each["user_id"], each["event_id"]) for each in some.to_pylist()}

    def _row(self, user: OneUser) -> dict[str, int]:
        """Count a replayed user in; returns what the user would have."""
        for each in user.earned:
            sums = self.figures.of_type(each.row["event_type"])
            sums.after += each.points or 0
            sums.refused += each.points is None
            sums.broken += each.points is None and bool(each.row["is_broken"])
            self.figures.of_month(f"{each.row['activity_date']:%Y-%m}")[1] += each.points or 0
            if self._asked.keep_days:
                key = user.user_id, each.day
                self._days[key] = self._days.get(key, 0) + (each.points or 0)
        for draft in user.corrected:
            day = date.fromisoformat(draft.activity_date or "")
            self.figures.of_type(draft.event_type or "").after += draft.points
            self.figures.of_month(f"{day:%Y-%m}")[1] += draft.points
            if self._asked.keep_days:
                self._days[user.user_id, day] = self._days.get((user.user_id, day), 0) + draft.points
        self.figures.impossible += user.impossible
        today = self._todays.of(user.user_id)
        streak, shown = fold_user(user.active, user.cover, today, self.figures.runs_after)
        return {
            "earned_after": user.total,
            "balance_after": user.balance(self._asked.now),
            "shown_after": shown,
            "length_after": streak.length if streak else 0,
            "longest_after": streak.longest if streak else 0,
            "active_days_after": streak.active_days if streak else 0,
            "last_after": (streak.last - FIRST).days if streak else 0,
        }

    # ---- who changes most

    def _top(self, users: pa.Table) -> list[dict[str, Any]]:
        earned, balance, longest = (
            pc.subtract(users[f"{name}_after"], users[f"{name}_before"])
            for name in ("earned", "balance", "longest")
        )
        score = pc.max_element_wise(pc.abs(earned), pc.abs(balance), pc.abs(longest))
        order = pc.sort_indices(
            pa.table({"score": score, "user_id": users["user_id"]}),
            sort_keys=[("score", "descending"), ("user_id", "ascending")],
        )[:TOP]
        found = users.take(order).append_column("score", score.take(order)).to_pylist()
        rows = {row["user_id"]: row for row in found if row.pop("score")}
        kept, self.figures = self.figures, Figures()  # these users are counted already
        for user, made in self._replayed(set(rows)):
            row = rows[user]
            expired = row["earned_before"] - made.spent_before - row["balance_before"]
            others = other_reasons(made, expired, self._asked.now)
            row["why"] = [*(each.text for each in reasons(made, self.timeline)), *others]
            rows[user]["impossible"] = [
                f"{each.what} of {each.points} at {each.at}" for each in made.impossible
            ]
        self.figures = kept
        return list(rows.values())


def what_if(objects: Objects, asked: WhatIfQuestion) -> WhatIfAnswer:
    """Return what a book would have led to."""
    return WhatIf(objects, asked).answer()


def _expiries(objects: Objects, real: Books) -> dict[int, str]:
    with table_of(db := small_database(), "events", objects, "events"):
        named = {row["rules_version"]: row["expiry"] for row in query(db, EXPIRIES).to_pylist()}
    return {each.number: each.book.expiry for each in real.versions if each.book.expiry} | named


def _with_rows(users: pa.Table, rows: dict[str, dict[str, int]]) -> pa.Table:
    """Return the users with what replayed ones would have."""
    if not rows:
        return users
    some = users.filter(users["is_replayed"]).to_pylist()
    changed = pa.Table.from_pylist([each | rows[each["user_id"]] for each in some], USERS)
    return pa.concat_tables([users.filter(pc.invert(users["is_replayed"])), changed])
