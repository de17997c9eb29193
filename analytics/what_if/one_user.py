"""One user's history under other books, step by step, for those whom columns cannot tell.

These are users with a redemption that may not have been possible, with freezes that may cost something else
or be used on other dates, and with dates that contradict each other (rule 8) of which other ones may count.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any

from analytics.what_if.figures import Impossible
from analytics.what_if.timeline import FIRST_INSTANT, Ruling, Timeline
from rules.book.book import Books, Version
from rules.book.point_rules import Cap, Period, instant_of_expiry, last_expired, lot_of, points_left
from rules.days import MICROSECOND, UnknownZone, skipped_dates, stamp, unstamp
from rules.engagement.account_state import Day
from rules.engagement.earnings import assign_dates, dates_beside, flight_gap_dates, instant_of, week_of
from rules.engagement.events import Event
from rules.engagement.ledger import EARNING, INTO_DEBT, Draft, EntryKind, FreezeNote
from rules.engagement.points import balancing_entries, clawback, is_earning, monday_of, shortfalls
from rules.engagement.streak import Checkpoint, Cover, fold, net_freezes, return_date, shown_streak

# What reversed events, and versions that took effect in the past, make of one user's points (rule 12).
#
# CLAWBACK and RERATE entries follow from the events that count and from the book. Under another book they are
# worked out anew, by the functions that wrote them, when they were written.


CANDIDATE = 0  # its number: lower than that of any version
Row = Mapping[str, Any]


class PredictedBooks(Books):
    """The versions that are in force with the candidate in the place of some, as published by an instant.

    Those that it replaces still tell what they said of the events that they have judged.
    """

    def __init__(self, timeline: Timeline, now: datetime) -> None:
        known = [_with_expiry(each, timeline) for each in timeline.real.versions if each.published_at <= now]
        in_force = [each for each in known if not timeline.is_candidates(each.effective_at)]
        if (candidate := timeline.candidate) is not None:
            in_force.append(Version(CANDIDATE, timeline.since or FIRST_INSTANT, lambda: candidate))
        if (until := timeline.until) and known:
            last = Books(known).at(until)
            in_force = [each for each in in_force if each.number != last.number]
            in_force.append(replace(last, effective_at=until))
        super().__init__(in_force or known)
        self._numbered = {each.number: each for each in (*known, *self.versions)}


def _with_expiry(version: Version, timeline: Timeline) -> Version:
    """Return a version with the rule of expiry that its events name; the lake's books have none."""
    rule = timeline.expiries.get(version.number)
    return replace(version, read=lambda: replace(version.book, expiry=rule)) if rule else version


@dataclass(slots=True)
class Corrections:
    """drafts: what the user's events earn, with the corrections, in the order in which it is written."""

    timeline: Timeline
    drafts: list[Draft] = field(default_factory=list)

    def count(self, event: Event, points: int, expires: str | None, row: Row, ruling: Ruling) -> None:
        """Note what an event has earned. expires: when its points do."""
        number = row["rules_version"] if ruling.points is None else ruling.version
        self.drafts.append(
            Draft(
                *(EntryKind.EARN, points, event.event_id, event.event_type, event.activity_date.isoformat()),
                rules_version=CANDIDATE if ruling.is_new and number is None else number,
                cap=event.cap,
                is_passive=event.is_passive,
                expires_on=expires,
            )
        )

    def reversed(self, event_id: str, now: datetime) -> list[Draft]:
        """Return what is written when an event is reversed: nothing if it has not counted."""
        named = [each for each in self.drafts if each.event_id == event_id]
        if len(named) != 1:
            return []
        books = PredictedBooks(self.timeline, now)
        return self._noted(clawback(named[0], "", self.drafts, books, ""))

    def rated(self, first: date, now: datetime) -> list[Draft]:
        """Return what is lacking by the versions that are known, from a date's week on."""
        since, books = monday_of(first), PredictedBooks(self.timeline, now)
        entries = [each for each in self.drafts if is_earning(each) and monday_of(_date_of(each)) >= since]
        return self._noted(balancing_entries(shortfalls(entries, books), books.newest.number, ""))

    def _noted(self, drafts: list[Draft]) -> list[Draft]:
        self.drafts += drafts
        return drafts


def day_without(day: Day, reversal: Draft) -> Day:
    """Return a day without an event that was reversed."""
    is_passive = reversal.is_passive
    return replace(
        day,
        events_count=day.events_count - 1,
        passive_events=day.passive_events - is_passive,
        reversed_events=day.reversed_events + (not is_passive),
    )


def _date_of(draft: Draft) -> date:
    return date.fromisoformat(draft.activity_date or "")


def rerated_since(rows: Iterable[Row]) -> dict[datetime, date]:
    """Return when a ledger was rated anew, with the earliest of the dates of which it was, by place.

    rows: in the order of the ledger. The RERATE entries of a CLAWBACK's transaction belong to that.
    """
    found: dict[datetime, date] = {}
    rerated: list[Row] = []
    for row in (*rows, None):
        if row is not None and row["kind"] == EntryKind.RERATE:
            rerated.append(row)
            continue
        if row is not None and row["kind"] == EntryKind.CLAWBACK:
            at = row["created_at"]
            while rerated and rerated[-1]["created_at"] == at - MICROSECOND:
                at = rerated.pop()["created_at"]
        if rerated:
            found[rerated[0]["created_at"]] = min(each["activity_date"] for each in rerated)
        rerated.clear()
    return found


DATED = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class EventOutcome:
    """What came of one event. points: None if it is refused. is_active: whether it keeps a streak."""

    row: Row
    ruling: Ruling
    day: date
    points: int | None
    is_active: bool


@dataclass(slots=True)
class OneUser:
    """A user whose ledger is gone through in order.

    spent_before: points that the ledger has as spent, less what came back. corrected: the CLAWBACK and RERATE
    entries that there would be; corrected_before: points of those that are. reversed: ids of their events.
    claims: by event, the date that it claims and its zone: dates are placed anew. None: they stay as the
    ledger has them, and `skipped` as the profile has it.
    """

    user_id: str
    timeline: Timeline
    pauses: tuple[tuple[date, date], ...] = ()
    skipped: frozenset[date] = frozenset()
    claims: Mapping[str, tuple[date, str]] | None = None
    opening: Checkpoint | None = None
    earned: list[EventOutcome] = field(default_factory=list)
    corrected: list[Draft] = field(default_factory=list)
    corrected_before: int = 0
    reversed: set[str] = field(default_factory=set)
    impossible: list[Impossible] = field(default_factory=list)
    _days: dict[date, Day] = field(default_factory=dict)
    _capped: dict[tuple[str, Period, date], dict[int, int]] = field(default_factory=dict)
    _lots: dict[date, int] = field(default_factory=lambda: defaultdict(int))
    _moves: dict[str, tuple[datetime, int]] = field(default_factory=dict)
    _undone: dict[str, int] = field(default_factory=dict)
    _held: dict[str, int] = field(default_factory=dict)
    _corrections: Corrections | None = None
    _rerated: dict[datetime, date] = field(default_factory=dict)
    spent_before: int = 0
    _sum: int = 0
    _freezes: list[tuple[date, int]] = field(default_factory=list)
    _granted: dict[str, date] = field(default_factory=dict)
    _free: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))

    def replay(self, rows: Sequence[Row]) -> "OneUser":
        """Go through a ledger's rows (LEDGER of rules.lake), in any order; returns itself."""
        steps = {
            EntryKind.REDEEM: self._redeem,
            EntryKind.REVERSE: self._reverse,
            EntryKind.EXPIRE: self._ignore,
            EntryKind.CLAWBACK: self._claw_back,
            EntryKind.RERATE: self._rerate,
        }
        others = [row["points"] for row in rows if row["kind"] not in (*EARNING, EntryKind.EXPIRE)]
        self.spent_before = -sum(others)
        corrections = [row for row in rows if row["kind"] in INTO_DEBT]
        self.corrected_before = sum(row["points"] for row in corrections)
        self.reversed = {row["event_id"] for row in corrections if row["event_id"]}
        if corrections:
            self._corrections = Corrections(self.timeline)
            self._rerated = rerated_since(sorted(rows, key=itemgetter("seq")))
        # What was held is there twice: when it was held, and when it was captured.
        captured = [
            (row["created_at"], row["seq"], row) for row in rows if _counts_at(row) != row["created_at"]
        ]
        in_order = sorted(
            [*((_counts_at(row), row["seq"], row) for row in rows), *captured], key=itemgetter(0, 1)
        )
        for is_earn, some in groupby(in_order, key=lambda each: each[2]["kind"] == EntryKind.EARN):
            if is_earn:
                for batch in _batches([row for _, _, row in some]):
                    self._earn(batch)
            else:
                for at, _, row in some:
                    is_capture = at != _counts_at(row)
                    step = self._capture if is_capture else steps.get(EntryKind(row["kind"]), self._other)
                    step(row)
        return self

    # ---- what it comes to

    @property
    def total(self) -> int:
        """Points ever earned."""
        return sum(each.points or 0 for each in self.earned) + sum(each.points for each in self.corrected)

    def balance(self, now: datetime) -> int:
        """Points that can be redeemed: what has expired by now is gone."""
        return self._sum - self._gone(now)

    def expired(self, now: datetime) -> int:
        """Points that have expired by now."""
        return self._gone(now)

    @property
    def cover(self) -> Cover:
        """What protects the streak."""
        return Cover(net_freezes(self._freezes), self.pauses, self._skipped(), opening=self.opening)

    @property
    def active(self) -> list[date]:
        """The active dates, ascending."""
        return sorted(day for day, each in self._days.items() if each.is_active)

    def _skipped(self) -> frozenset[date]:
        if self.claims is None:
            return self.skipped
        taken = [each for each in self.earned if each.points is not None]
        zones = {self.claims[at][1] for each in taken if (at := each.row["event_id"]) in self.claims}
        flown = flight_gap_dates([(each.row["event_id"], each.day) for each in taken if each.is_active], {})
        return frozenset(flown).union(*map(_skipped_in, zones))

    # ---- events

    def _earn(self, batch: Sequence[Row]) -> None:
        """Apply the entries of one transaction: their dates are placed together."""
        taken = [(row, ruling) for row in batch for ruling in (self._ruling(row),)]
        for row, ruling in taken:
            if ruling.is_refused:
                self.earned.append(EventOutcome(row, ruling, row["activity_date"], None, is_active=False))
        events = {row["event_id"]: self._event(row, ruling) for row, ruling in taken if not ruling.is_refused}
        if self.claims is not None:
            near = dates_beside(each.activity_date for each in events.values())
            placed = assign_dates(list(events.values()), {day: self._days.get(day) for day in near})
            events = {each.event_id: each for each in placed}
        for row, ruling in taken:
            if not ruling.is_refused:
                self._count(row, ruling, events[row["event_id"]])

    def _ruling(self, row: Row) -> Ruling:
        occurred = instant_of(row["event_id"])
        found = self.timeline.ruling(
            row["event_type"], row["rules_version"], occurred, is_broken=bool(row.get("is_broken"))
        )
        return next((each for begins, each in found.later if row["created_at"] >= begins), found)

    def _event(self, row: Row, ruling: Ruling) -> Event:
        keeps = not row["is_passive"] if ruling.keeps_streak is None else ruling.keeps_streak
        day = (self.claims or {}).get(row["event_id"], (row["activity_date"], ""))[0]
        points = row["points"] if ruling.points is None else ruling.points
        cap = Cap.of(row["cap"]) if ruling.points is None else ruling.cap
        at = row["event_id"]
        return Event(
            *(self.user_id, at, "", row["event_type"], at, day, "UTC", points, "", ""),
            cap=cap,
            is_passive=not keeps,
        )

    def _count(self, row: Row, ruling: Ruling, event: Event) -> None:
        points, day = self._left(event), event.activity_date
        self._sum += points
        known = self._days.get(day)
        self._days[day] = _day_with(known, event)
        self.earned.append(EventOutcome(row, ruling, day, points, is_active=not event.is_passive))
        ends = row["expires_on"]
        if ruling.is_new or (ends is None and ruling.expiry):
            ends = lot_of(ruling.expiry, day, event.cap) if ruling.expiry else None
        if ends and points:
            self._lots[ends] += points
        if self._corrections:
            expiry = ends.isoformat() if ends and points else None
            self._corrections.count(event, points, expiry, row, ruling)

    def _left(self, event: Event) -> int:
        if event.cap is None:
            return event.points_awarded
        earned = self._capped_of(event.event_type, event.cap, event.activity_date)
        points = points_left(event.points_awarded, event.cap.points, earned)
        earned[event.cap.points] = earned.get(event.cap.points, 0) + points
        return points

    def _capped_of(self, event_type: str, cap: Cap, day: date) -> dict[int, int]:
        """Return what has been earned in a cap's period, by cap."""
        first = week_of(day)[0] if cap.per is Period.WEEK else day
        return self._capped.setdefault((event_type, cap.per, first), {})

    # ---- what is taken back

    def _claw_back(self, row: Row) -> None:
        if self._corrections:
            self._correct(self._corrections.reversed(row["event_id"], row["created_at"]))

    def _rerate(self, row: Row) -> None:
        if self._corrections and (first := self._rerated.get(row["created_at"])):
            self._correct(self._corrections.rated(first, row["created_at"]))

    def _correct(self, drafts: Sequence[Draft]) -> None:
        for each in drafts:
            day, kind = date.fromisoformat(each.activity_date or ""), each.event_type or ""
            self._sum += each.points
            if each.expires_on and each.points:
                self._lots[date.fromisoformat(each.expires_on)] += each.points
            if each.cap:
                earned = self._capped_of(kind, each.cap, day)
                earned[each.cap.points] = earned.get(each.cap.points, 0) + each.points
            if each.kind is EntryKind.CLAWBACK:
                self._days[day] = day_without(self._days[day], each)
            self.corrected.append(each)

    # ---- commands

    def _redeem(self, row: Row) -> None:
        at, price = _counts_at(row), -row["points"]
        is_freeze = row["freeze"] == FreezeNote.GRANTED
        if row["rules_version"] and row["reward_id"] and not row["freeze"]:
            asked = self.timeline.price(row["reward_id"], price, row["created_at"])
            if isinstance(asked, str):
                self._refuse(row, "redemption", price, 0, asked)
                return
            price = asked
        if is_freeze:
            price = self._price(row)
            if why := self._too_many(row):
                self._refuse(row, "freeze", price, 0, why)
                return
        missing = price - (self._sum - self._gone(at))
        if price and missing > 0:
            what = "freeze" if is_freeze else "hold" if row["held_at"] else "redemption"
            self._refuse(row, what, price, missing, "the balance would not have covered it")
            return
        if is_freeze:
            self._take(row)
        self._sum -= price
        self._moves[stamp(row["created_at"])] = (at, price)
        if row["held_at"]:
            self._held[stamp(row["created_at"])] = price

    def _capture(self, row: Row) -> None:
        """Spend what was held, if a clawback has left it; otherwise it is free again."""
        if (price := self._held.get(place := stamp(row["created_at"]))) is None:
            return
        # What is held is still part of the balance.
        missing = price - (self._sum + sum(self._held.values()) - self._gone(row["created_at"]))
        del self._held[place]
        if price and missing > 0:
            del self._moves[place]
            self._sum += price
            self._refuse(row, "hold", price, missing, "what was taken back would have left too little of it")

    def _refuse(self, row: Row, what: str, price: int, missing: int, why: str) -> None:
        self.impossible.append(Impossible(self.user_id, what, stamp(_counts_at(row)), price, missing, why))
        self._undone[stamp(row["created_at"])] = 0

    def _reverse(self, row: Row) -> None:
        """Undo what a redemption took, if there was one. Spent freezes that come back have no points."""
        undone = row["reverses"]
        if undone in self._moves:
            _, price = self._moves.pop(undone)
            self._sum += price
            if row["freeze"] == FreezeNote.REVOKED and undone in self._granted:
                self._freezes.append((self._gone_from(row, self._granted.pop(undone)), -1))
        elif undone not in self._undone and not row["freeze"]:
            self._other(row)

    def _other(self, row: Row) -> None:
        """Take an entry of another kind as it is."""
        self._sum += row["points"]

    def _ignore(self, row: Row) -> None:
        """An expiry follows from the rest."""

    def _gone(self, now: datetime) -> int:
        """Return what has expired by an instant, as far as known then."""
        until, earned, gone = last_expired(now), 0, 0
        for on in sorted(day for day in self._lots if day <= until):
            earned += self._lots[on]
            noon = instant_of_expiry(on)
            spent = sum(points for when, points in self._moves.values() if when <= noon)
            gone = max(gone, earned - spent)
        return gone

    # ---- freezes

    def _price(self, row: Row) -> int:
        """Return what a freeze costs: one of the month's free ones, a gift, or at its price.

        Whether a freeze for nothing was a gift follows from how many of the month's free ones were left.
        """
        at = row["created_at"]
        free = self._free[f"{at:%Y-%m}"]
        terms, real = self.timeline.freezes(at), self.timeline.real_at(at).freezes
        if row["points"] == 0 and free[0] >= real.free_a_month and real.price_points:
            return 0
        return terms.price(free[1])

    def _take(self, row: Row) -> None:
        at, day = row["created_at"], row["freeze_date"]
        free = self._free[f"{at:%Y-%m}"]
        real = self.timeline.real_at(at).freezes
        is_gift = row["points"] == 0 and free[0] >= real.free_a_month and bool(real.price_points)
        # Only a free one that the month still has is one of the month's: another may cost nothing, too.
        free[0] += row["points"] == 0 and free[0] < real.free_a_month
        free[1] += not is_gift and free[1] < self.timeline.freezes(at).free_a_month
        if day:
            self._freezes.append((day, 1))
            self._granted[stamp(at)] = day

    def _too_many(self, row: Row) -> str:
        """Return why no further freeze may be held; a gift for a date of its own always may."""
        at, day = row["created_at"], row["freeze_date"]
        if day is None or abs(day - at.astimezone(UTC).date()) > DATED:
            return ""
        streak = fold(self.active, self.cover)
        held = shown_streak(streak, self.cover, max(day, streak.last) if streak else day).freezes_available
        most = self.timeline.freezes(at).held_max
        return f"{held} freezes would have been held, and {most} may be" if held >= most else ""

    def _gone_from(self, row: Row, granted: date) -> date:
        """Return from when a returned freeze is gone: as the ledger says, if it was in use there too."""
        stored = row["freeze_date"]
        today = row["created_at"].astimezone(UTC).date()
        found = return_date(fold(self.active, self.cover), self.cover, granted, today)
        return stored if stored and granted not in (found, stored) else found


def _counts_at(row: Row) -> datetime:
    """Return when an entry counts: of what was held, when it was held."""
    if row["kind"] == EntryKind.REDEEM and row["held_at"]:
        return unstamp(row["held_at"])
    found: datetime = row["created_at"]
    return found


def _skipped_in(zone: str) -> frozenset[date]:
    try:
        return skipped_dates(zone)
    except UnknownZone:
        return frozenset()


def _batches(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield the entries of each transaction: their places are a microsecond apart."""
    batch: list[Row] = []
    for row in rows:
        if batch and row["created_at"] - batch[-1]["created_at"] != MICROSECOND:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _day_with(day: Day | None, event: Event) -> Day:
    """Return a day with one more event: when it was opened, and when it was used last."""
    at = event.event_id
    if day is None:
        return Day(event.user_id, event.activity_date, at, 1, 0, {}, "", "", at, int(event.is_passive))
    first, last = day.first_event_id, day.last_event_id
    if not event.is_passive:
        first, last = (min(first, at), max(last, at)) if day.was_active else (at, at)
    passive = day.passive_events + event.is_passive
    return replace(
        day,
        first_event_id=first,
        last_event_id=last,
        events_count=day.events_count + 1,
        passive_events=passive,
    )
