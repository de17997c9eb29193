"""Judges a part of the ledger: what its users have, and what they would have."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import numpy as np
import pyarrow as pa

from analytics.what_if.entry_columns import EntryColumns, Flags, JudgedEntries
from analytics.what_if.figures import USERS, Figures
from analytics.what_if.goals import Goals
from analytics.what_if.ledger_parts import (
    CLAWBACK,
    EXPIRE,
    GRANTED,
    NEVER,
    OTHER,
    REDEEM,
    RERATE,
    REVERSE,
    ExpiredPoints,
    Numbers,
    earned_points,
    last_expired,
    running_sums,
)
from analytics.what_if.runs import FIRST, RunLengths, StreakColumns, active_keys, fold_covered, streaks
from analytics.what_if.timeline import Timeline
from analytics.what_if.user_settings import Todays, UserSettings, pauses_left
from rules.days import EPOCH
from rules.engagement.streak import Cover, net_freezes

PERIOD_BITS = 26
THURSDAY, DAYS_A_WEEK = 3, 7  # 1970-01-01 was one, the first weekday being Monday
Doubtful = Callable[[], Collection[str]]


@dataclass(slots=True)
class PartJudge:
    """Judges parts. now: until when points expire. settings: by user. todays: which date is today for whom.

    doubtful: users whose dates may have to be placed anew; asked for once an event would keep a streak, or
    be there, that is not now.
    """

    timeline: Timeline
    now: datetime
    settings: Mapping[str, UserSettings]
    todays: Todays
    doubtful: Doubtful
    figures: Figures
    goals: Goals | None = None

    def judge(self, table: pa.Table) -> tuple[pa.Table, set[str], Callable[[], pa.Table]]:
        """Return the users (figures.USERS), those who must be replayed one by one, and the points by day.

        What those users would have is 0 in the rows, and not in the figures' sums of after.
        """
        entries = EntryColumns(table)
        judged = entries.judged(self.timeline)
        points = self._earned(entries, judged)
        is_active = ~(judged.is_passive | judged.is_refused | entries.is_reversed)
        changed = entries.added((is_active != entries.was_active).astype(np.int64)) > 0
        had = entries.correction("points")
        is_touched = self._touched(entries, judged)
        # Of what corrections make of other points than those that were, only replays tell.
        corrected = np.where(is_touched[entries.user[entries.corrects]], 0, had)
        gone_before = self._expired(entries, entries.earn("points"), entries.earn("expires_on"), had)
        gone_after = self._expired(entries, points, judged.expires_on, corrected)
        differs = (points != entries.earn("points")) | (judged.expires_on != entries.earn("expires_on"))
        is_other = (entries.added(differs.astype(np.int64)) > 0) | (is_touched & entries.has(RERATE))
        replayed = self._watched(entries, changed) | self._corrected(entries, is_touched)
        replayed |= self._priced(entries)
        replayed |= is_other & self._overdrawn(entries, points, gone_after, corrected)
        before = self._streaks(entries, entries.was_active, self.figures.runs_before, replayed & False, False)
        after = self._streaks(entries, is_active, self.figures.runs_after, replayed, True)
        self._add(entries, judged, points, replayed)
        self._add_corrections(entries, corrected, replayed)
        if self.goals and self.goals.is_asked:
            self.goals.add(entries, judged, (points, corrected), replayed, self._covers)
        other = entries.added(*self._others(entries))
        columns = {
            "user_id": pa.array(entries.ids, pa.string()),
            **_figure_columns(
                "before",
                entries.added(entries.earn("points")) + entries.corrected(had),
                other - self._now(gone_before, entries),
                before,
            ),
            **_figure_columns(
                "after",
                entries.added(points) + entries.corrected(corrected),
                other - self._now(gone_after, entries),
                after,
            ),
            "is_replayed": replayed,
        }
        known = {
            name: np.where(replayed, 0, each) if name.endswith("_after") else each
            for name, each in columns.items()
        }
        rows = pa.table([pa.array(known[name]) for name in USERS.names], schema=USERS)
        return (
            rows,
            {entries.ids[user] for user in np.flatnonzero(replayed)},
            lambda: _days(entries, points, corrected),
        )

    def _earned(self, entries: EntryColumns, judged: JudgedEntries) -> Numbers:
        """Return what each EARN entry's event earns. Users without a new ruling keep what they have."""
        day, had = entries.earn("day"), entries.earn("points")
        period = np.where(judged.is_weekly, day - (day + THURSDAY) % DAYS_A_WEEK, day) + (
            1 << PERIOD_BITS - 2
        )
        group = entries.earner * len(entries.kinds) + entries.kind
        points = earned_points(
            group * 2 + judged.is_weekly << PERIOD_BITS | period, judged.points, judged.limit
        )
        if self.timeline.candidate is None:  # what is left of a cap follows from corrections in between, too
            is_corrected = entries.has(CLAWBACK) | entries.has(RERATE)
            return np.where(is_corrected[entries.earner], had, points)
        return np.where(self._touched(entries, judged)[entries.earner], points, had)

    def _touched(self, entries: EntryColumns, judged: JudgedEntries) -> Flags:
        """Return the users with an event that the candidate judges."""
        return entries.added(judged.is_new.astype(np.int64)) > 0

    def _expired(
        self, entries: EntryColumns, points: Numbers, ends: Numbers, corrected: Numbers
    ) -> ExpiredPoints:
        """Return what expires. corrected: the points of CLAWBACK and RERATE entries."""
        users = np.append(entries.earner, entries.user[entries.corrects])
        ends = np.append(ends, entries.correction("expires_on"))
        points = np.append(points, corrected)
        is_lot = (ends != NEVER) & (points != 0)
        lots = users[is_lot], ends[is_lot], points[is_lot]
        what, of = entries.of["what"], entries.of
        is_moved = ((what == REDEEM) | (what == REVERSE)) & (of["points"] != 0) & is_lot.any()
        moved = np.flatnonzero(is_moved)
        when = np.where(of["undone_at"][moved] >= 0, of["undone_at"][moved], of["counts_at"][moved])
        return ExpiredPoints.of(lots, (entries.user[moved], when, -of["points"][moved]))

    def _now(self, gone: ExpiredPoints, entries: EntryColumns) -> Numbers:
        at = np.array([(self.now - EPOCH) // timedelta(microseconds=1)])
        every = np.arange(entries.size)
        return gone.by(every, np.repeat(last_expired(at), entries.size))

    @staticmethod
    def _others(entries: EntryColumns) -> tuple[Numbers, Numbers]:
        """Return the points of what neither earns nor expires, and whose they are."""
        what = entries.of["what"]
        at = np.flatnonzero((what == REDEEM) | (what == REVERSE) | (what == OTHER))
        return entries.of["points"][at], entries.user[at]

    # ---- who must be replayed

    def _corrected(self, entries: EntryColumns, is_touched: Flags) -> Flags:
        """Return the users whose corrections follow from what other events earn.

        A candidate that is in force all along leaves no version of the past: then nothing is rated anew.
        """
        rated = entries.has(RERATE) if self.timeline.is_partial else entries.has(RERATE) & False
        return is_touched & (entries.has(CLAWBACK) | rated)

    def _priced(self, entries: EntryColumns) -> Flags:
        """Return the users who have redeemed a reward that would have cost something else."""
        names, coded = entries.rewards.dictionary.to_pylist(), entries.rewards.indices
        at = np.flatnonzero(coded.is_valid().to_numpy(zero_copy_only=False))
        which = coded.take(pa.array(at)).to_numpy().astype(np.int64)
        points, when = entries.of["points"][at], entries.of["created_at"][at]
        differs = [
            self.timeline.price(names[name], -had, EPOCH + timedelta(microseconds=then)) != -had
            for name, had, then in zip(which.tolist(), points.tolist(), when.tolist(), strict=True)
        ]
        return entries.added(*_ones(entries, at[np.array(differs, np.bool_)])) > 0

    def _watched(self, entries: EntryColumns, changed: Flags) -> Flags:
        """Return the users whose freezes, or whose dates, may follow another way."""
        has_freezes = entries.added(*_ones(entries, entries.of["freeze"] == GRANTED)) > 0
        found = has_freezes & (changed | self.timeline.changes_freezes)
        if self.timeline.changes_pauses:
            found |= has_freezes & np.array([bool(self._settings(each).pauses) for each in entries.ids])
        if changed.any():
            doubtful = self.doubtful()
            is_doubtful = [each in doubtful or bool(self._settings(each).skipped) for each in entries.ids]
            found |= changed & np.array(is_doubtful)
        return found

    def _overdrawn(
        self, entries: EntryColumns, points: Numbers, gone: ExpiredPoints, corrected: Numbers
    ) -> Flags:
        """Return the users of whom some redemption might not have been possible.

        What had expired by then is at most what has expired of these lots in the end: later events add to
        lots, and reversals take from what was spent.
        """
        what, values = entries.of["what"], entries.of["points"].copy()
        values[entries.earns] = points
        values[entries.corrects] = corrected
        values[what == EXPIRE] = 0
        left = running_sums(values, entries.user)
        spends = np.flatnonzero(((what == REDEEM) | (what == OTHER)) & (values < 0))
        days = last_expired(entries.of["counts_at"][spends])
        is_short = left[spends] < gone.by(entries.user[spends], days)
        return entries.added(*_ones(entries, spends[is_short])) > 0

    # ---- streaks

    def _streaks(
        self, entries: EntryColumns, is_active: Flags, lengths: RunLengths, left_out: Flags, is_after: bool
    ) -> StreakColumns:
        keys = active_keys(entries.earner[is_active], entries.earn("day")[is_active])
        covers = self._covers(entries, is_after=is_after)
        uncounted = left_out.copy()
        uncounted[list(covers)] = True
        today = self._today(entries)
        columns = streaks(keys, entries.size, today, uncounted, lengths)
        some = {user: cover for user, cover in covers.items() if not left_out[user]}
        fold_covered(columns, keys, some, today, lengths)
        return columns

    def _today(self, entries: EntryColumns) -> Numbers:
        """Return today's date by user, as a number of days."""
        found = np.full(entries.size, (self.todays.in_utc - FIRST).days, np.int64)
        for user, name in enumerate(entries.ids) if self.todays.others else ():
            found[user] = (self.todays.of(name) - FIRST).days
        return found

    def _covers(self, entries: EntryColumns, *, is_after: bool) -> dict[int, Cover]:
        changes: dict[int, list[tuple[date, int]]] = defaultdict(list)
        for row in np.flatnonzero((entries.of["freeze"] > 0) & (entries.of["freeze_date"] != NEVER)).tolist():
            change = 1 if entries.of["freeze"][row] == GRANTED else -1
            day = FIRST + timedelta(days=int(entries.of["freeze_date"][row]))
            changes[int(entries.user[row])].append((day, change))
        covers = {user: Cover(net_freezes(some)) for user, some in changes.items()}
        for user, name in enumerate(entries.ids) if self.settings else ():
            if known := self.settings.get(name):
                pauses = pauses_left(known.pauses, self.timeline)[0] if is_after else known.pauses
                freezes = covers.get(user, Cover()).freezes
                covers[user] = Cover(freezes, pauses, known.skipped, opening=known.opening)
        return covers

    def _settings(self, user: str) -> UserSettings:
        return self.settings.get(user) or UserSettings()

    # ---- sums

    def _add(self, entries: EntryColumns, judged: JudgedEntries, points: Numbers, replayed: Flags) -> None:
        """Count the entries in: all as they are, and as they would be those of users who are not replayed."""
        had, is_counted = entries.earn("points"), ~replayed[entries.earner]
        after = np.where(is_counted, points, 0)
        refused = judged.is_refused & is_counted
        broken = refused & entries.is_broken
        for code, name in enumerate(entries.kinds[:-1]):
            of_type = entries.kind == code
            sums = self.figures.of_type(name)
            sums.entries += int(of_type.sum())
            sums.before += int(had[of_type].sum())
            sums.after += int(after[of_type].sum())
            sums.refused += int(refused[of_type].sum())
            sums.broken += int(broken[of_type].sum())
        self._add_months(entries.earn("day"), had, after)
        is_redemption = (entries.of["what"] == REDEEM) & (entries.of["points"] < 0)
        self.figures.redemptions += int(is_redemption.sum())
        self.figures.entries += len(entries.user)

    def _add_corrections(self, entries: EntryColumns, corrected: Numbers, replayed: Flags) -> None:
        had, kinds = entries.correction("points"), entries.kind_of_all[entries.corrects]
        after = np.where(replayed[entries.user[entries.corrects]], 0, corrected)
        for code in np.unique(kinds).tolist():
            sums = self.figures.of_type(entries.kinds[code])
            sums.before += int(had[kinds == code].sum())
            sums.after += int(after[kinds == code].sum())
        self._add_months(entries.correction("day"), had, after)

    def _add_months(self, day: Numbers, had: Numbers, after: Numbers) -> None:
        if not len(day):
            return
        first = int(day.min())
        sums = [np.bincount(day - first, weights=some) for some in (had, after)]  # exact below 2^53
        for number, (before, then) in enumerate(zip(*(each.tolist() for each in sums), strict=True)):
            if before or then:
                month = self.figures.of_month((FIRST + timedelta(days=first + number)).strftime("%Y-%m"))
                month[0] += round(before)
                month[1] += round(then)


def _ones(entries: EntryColumns, at: Flags | Numbers) -> tuple[Numbers, Numbers]:
    users = entries.user[at]
    return np.ones(len(users), np.int64), users


def _figure_columns(when: str, points: Numbers, rest: Numbers, streak: StreakColumns) -> dict[str, Numbers]:
    values = (points, points + rest, streak.shown, streak.length, streak.longest, streak.active, streak.last)
    names = ("earned", "balance", "shown", "length", "longest", "active_days", "last")
    return {f"{name}_{when}": value for name, value in zip(names, values, strict=True)}


def _days(entries: EntryColumns, points: Numbers, corrected: Numbers) -> pa.Table:
    """Return the points by user and day, for who wants to compare them."""
    users = np.append(entries.earner, entries.user[entries.corrects])
    table = {
        "user_id": pa.array(entries.ids).take(pa.array(users)),
        "day": np.append(entries.earn("day"), entries.correction("day")),
        "points": np.append(points, corrected),
    }
    return pa.table(table).group_by(["user_id", "day"]).aggregate([("points", "sum")])
