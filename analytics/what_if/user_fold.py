"""One user's history under other books, replayed by the rules: what events earn, and what was possible.

UserFold goes through the ledger in order. While nothing differs from what happened, it takes each redemption
as possible. From the first difference on it asks the rules.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from analytics.what_if.figures import ImpossibleAct
from analytics.what_if.timeline import CANDIDATE, PredictedBooks, Terms, TermsMemo, Timeline
from rules.book.point_rules import Cap
from rules.days import EPOCH, MICROSECOND, UnknownZone, skipped_dates, stamp, unstamp
from rules.engagement.account import apply_to_days
from rules.engagement.account_state import Day
from rules.engagement.assigned_dates import assign_dates, dates_beside, flight_gap_dates
from rules.engagement.earnings import CappedPoints, monday_of
from rules.engagement.events import Event
from rules.engagement.ledger import EARNING, INTO_DEBT, Draft, Entry, EntryKind, FreezeNote
from rules.engagement.lots import Spending, expired_points
from rules.engagement.points import balancing_entries, clawback, is_earning, shortfalls
from rules.engagement.streak import Checkpoint, Cover, fold, net_freezes, return_date, shown_streak

CAPTURE = "CAPTURE"  # the kind of a step that no entry has: what was held before is spent
NO_NEW_DATES: Mapping[str, date] = {}
# A freeze for a date that is farther from the day of its entry is a gift for that date.
USUAL_FREEZE_SPAN = timedelta(days=1)
NO_DATES: frozenset[date] = frozenset()


class Row(NamedTuple):
    """An entry of the ledger (LEDGER of rules.lake.entities), and properties that its event was sent with."""

    user_id: str
    kind: str
    event_type: str
    version: int  # 0 for none
    cap: str | None
    is_passive: bool
    segment: int  # how many boundaries of the timeline the event is not before
    is_broken: bool  # the candidate's contract refuses the event's properties
    created_at: int  # microseconds since 1970
    seq: int
    points: int
    event_id: str
    day: date
    expires_on: date | None
    held_at: str | None
    reverses: str | None
    freeze: str | None
    freeze_date: date | None
    reward_id: str | None
    measures: str | None
    claimed: date | None  # the date that the event claims; only of users whose dates may be placed anew
    zone: str | None  # the zone that this date was read in
    properties: str | None  # only of event types of which streaks or achievements sum a property

    @property
    def terms_key(self) -> tuple[Any, ...]:
        """The fields that say which terms judge its event (TermsMemo): from event_type to is_broken."""
        return self[2:8]

    @property
    def at(self) -> datetime:
        """When it was written."""
        return EPOCH + self.created_at * MICROSECOND

    @property
    def counts_at(self) -> datetime:
        """When it counts. A captured hold counts from when it was held."""
        return unstamp(self.held_at) if self.kind == EntryKind.REDEEM and self.held_at else self.at

    @property
    def place(self) -> str:
        """Its place in the ledger: the stamp of its instant."""
        return stamp(self.at)

    @property
    def month(self) -> str:
        """The month in which it was written: YYYY-MM."""
        return f"{self.at:%Y-%m}"

    @property
    def is_price(self) -> bool:
        """Whether it is a redemption at a price of the book."""
        return bool(self.version and self.reward_id and not self.freeze)


class Outcome(NamedTuple):
    """What comes of one event under the books of a timeline."""

    row: Row
    terms: Terms
    day: date  # that it counts for
    points: int | None  # None: it is refused

    @property
    def is_active(self) -> bool:
        """Whether it keeps a streak."""
        return self.points is not None and self.terms.is_active


@dataclass(frozen=True, slots=True)
class UserSettings:
    """A user's settings, of which the ledger says nothing."""

    pauses: tuple[tuple[date, date], ...] = ()  # both dates are included
    skipped: frozenset[date] = NO_DATES  # dates that are no misses
    opening: Checkpoint | None = None  # see Cover
    pauses_after: tuple[tuple[date, date], ...] = ()  # those of them that the books of the timeline allow
    # The dates of the events contradict each other (rule 8), so others may count if some events do not.
    has_doubts: bool = False


@dataclass(slots=True)
class World:
    """What a user has, as it is or as it would be."""

    earned: int  # points ever
    balance: int  # without what has expired
    expired: int  # points
    active: set[date]  # dates with an event that keeps a streak
    cover: Cover  # what protects the streak


def as_it_was(rows: Sequence[Row], settings: UserSettings, now: datetime) -> World:
    """Return what a user has by the ledger as it is."""
    lots: dict[date, int] = defaultdict(int)
    moves: list[Spending] = []
    freezes: list[tuple[date, int]] = []
    taken_back = {row.event_id for row in rows if row.kind == EntryKind.CLAWBACK}
    earned = others = 0
    active = set()
    for row in rows:
        kind = row.kind
        if kind in EARNING:
            earned += row.points
            if row.expires_on:
                lots[row.expires_on] += row.points
            if kind == EntryKind.EARN and not row.is_passive and row.event_id not in taken_back:
                active.add(row.day)
        elif kind != EntryKind.EXPIRE:
            others += row.points
            if row.points and kind in (EntryKind.REDEEM, EntryKind.REVERSE):
                when = row.held_at or row.reverses
                moves.append((unstamp(when) if when else row.at, -row.points))
            if row.freeze_date and row.freeze in (FreezeNote.GRANTED, FreezeNote.REVOKED):
                freezes.append((row.freeze_date, 1 if row.freeze == FreezeNote.GRANTED else -1))
    cover = Cover(net_freezes(freezes), settings.pauses, settings.skipped, opening=settings.opening)
    expired = expired_points(lots, moves, now)
    return World(earned, earned + others - expired, expired, active, cover)


class PlacedDates:
    """Places the events of one user on dates anew (rule 8).

    It is needed if some events do not count any more, and the dates of the events contradict each other: then
    others of them may give the dates.
    """

    def __init__(self, user_id: str) -> None:
        self._user_id = user_id
        self._days = dict[date, Day]()
        self.flight_gaps = set[date]()  # dates that flights leave out

    def place(self, batch: Sequence[Row], terms_of: Mapping[str, Terms]) -> dict[str, date]:
        """Return the dates of one transaction's events by event id, without those that are refused.

        terms_of: the terms of each event, by its id.
        """
        judged = [row for row in batch if not terms_of[row.event_id].ruling.is_refused]
        events = [self._event(row, terms_of[row.event_id]) for row in judged]
        near = dates_beside(event.activity_date for event in events)
        placed = assign_dates(events, {day: self._days.get(day) for day in near})
        opened = [(event.event_id, event.activity_date) for event in placed if not event.is_passive]
        beside = {day: self._days.get(day) for day in dates_beside(day for _, day in opened)}
        self.flight_gaps |= flight_gap_dates(opened, beside)
        dates = {event.event_id: event.activity_date for event in placed}
        for row in judged:
            is_passive = not terms_of[row.event_id].is_active
            self.count(row, _day_draft(EntryKind.EARN, row, dates[row.event_id], is_passive))
        return dates

    def take_back(self, row: Row, outcomes: Iterable[Outcome]) -> None:
        """Take the event that a CLAWBACK names from its day. outcomes: of all events so far."""
        for outcome in outcomes:
            if outcome.row.event_id == row.event_id and outcome.points is not None:
                self.count(row, _day_draft(EntryKind.CLAWBACK, row, outcome.day, not outcome.is_active))

    def count(self, row: Row, draft: Draft) -> None:
        """Count an entry into its day. row: says where in the ledger it stands."""
        self._days |= apply_to_days(self._days, [Entry(self._user_id, row.place, row.seq, 0, draft)])

    def _event(self, row: Row, terms: Terms) -> Event:
        # Placing reads the id, the date and whether it is passive. The rest is left empty.
        values = (row.event_id, "", row.event_type, row.event_id, row.claimed or row.day)
        return Event(self._user_id, *values, "UTC", 0, "", "", is_passive=not terms.is_active)


def _day_draft(kind: EntryKind, row: Row, day: date, is_passive: bool) -> Draft:
    """Return an entry that moves an event's day, and no points."""
    return Draft(kind, 0, row.event_id, row.event_type, day.isoformat(), is_passive=is_passive)


class UserFold:
    """A user's ledger, gone through in order under the books of a timeline."""

    def __init__(
        self, rows: Sequence[Row], timeline: Timeline, terms_of: TermsMemo, settings: UserSettings
    ) -> None:
        """rows: of one user, in the ledger's order, at least one. settings: of that user."""
        self.rows, self.timeline, self.settings = rows, timeline, settings
        self.user_id = rows[0].user_id
        self.outcomes: list[Outcome] = []  # of the events
        # The CLAWBACK and RERATE entries that there would be; with their points alone where they stay.
        self.corrected: list[Draft] = []
        self.impossible: list[ImpossibleAct] = []
        self.sum = 0  # the balance, with what has expired
        self.lots: dict[date, int] = defaultdict(int)  # points by the date on which they expire
        self.moves: dict[str, Spending] = {}  # by place: what was spent
        self._terms = {
            row.event_id: terms_of[row.terms_key].at(row.created_at)
            for row in rows
            if row.kind == EntryKind.EARN
        }
        corrections = [row for row in rows if row.kind in INTO_DEBT]
        is_judged_anew = any(terms.ruling.is_new for terms in self._terms.values())
        # If the candidate judges no event of a user, points stay as they are. Caps are not filled anew then,
        # because corrections between the events have changed what was left of them.
        self._keeps_points = not is_judged_anew and bool(timeline.candidate or corrections)
        self._rates_anew = bool(corrections) and not self._keeps_points
        self._rerated = rerated_since(rows) if self._rates_anew else {}
        self._drafts: list[Draft] = []  # all entries so far, if corrections are worked out anew from them
        self.has_changed = any(terms.is_active != terms.was_active for terms in self._terms.values())
        # None: the events stay on the dates of the ledger
        self._placed_dates = PlacedDates(self.user_id) if self.has_changed and settings.has_doubts else None
        self._capped = CappedPoints()
        self._undone: set[str] = set()  # places of what was impossible
        # How many more entries there would be than there are, by their points and when these expire. All are
        # zero while nothing differs.
        self._differences = Counter[tuple[int, date | None]]()
        self._held: dict[str, int] = {}  # by place: points
        self._freezes: list[tuple[date, int]] = []  # (from which date on, one more or one less)
        self._granted: dict[str, date] = {}  # by place: the date of a freeze
        self._free: dict[str, list[int]] = defaultdict(lambda: [0, 0])  # by month: free freezes before, after
        self._taken_back: set[str] = set()  # ids of events

    def replay(self) -> "UserFold":
        """Go through the rows; returns itself."""
        steps = {
            EntryKind.REDEEM: self._redeem,
            EntryKind.REVERSE: self._reverse,
            EntryKind.EXPIRE: self._ignore,
            EntryKind.CLAWBACK: self._claw_back,
            EntryKind.RERATE: self._rerate,
            CAPTURE: self._capture,
        }
        for kind, rows in groupby(self._in_order(), key=attrgetter("kind")):
            if kind == EntryKind.EARN and self._placed_dates:
                for batch in _batches(rows):
                    self._earn(batch, self._placed_dates.place(batch, self._terms))
            elif kind == EntryKind.EARN:
                self._earn(rows, NO_NEW_DATES)
            else:
                step = steps.get(kind, self._other)
                for row in rows:
                    step(row)
        return self

    def _in_order(self) -> Sequence[Row]:
        """Return the rows in the order in which they count.

        A captured hold is among them twice: when it was held, and when it was captured.
        """
        captured = [row for row in self.rows if row.held_at and row.kind == EntryKind.REDEEM]
        if not captured:
            return self.rows
        dated = [(row.counts_at, row.seq, row) for row in self.rows]
        dated += [
            (row.at, row.seq, row._replace(kind=CAPTURE)) for row in captured if row.counts_at != row.at
        ]
        return [row for _, _, row in sorted(dated, key=itemgetter(0, 1))]

    def world(self, now: datetime) -> World:
        """Return what the user would have."""
        of_events = sum(outcome.points or 0 for outcome in self.outcomes)
        earned = of_events + sum(draft.points for draft in self.corrected)
        expired = self._expired(now)
        return World(earned, self.sum - expired, expired, self.active, self.cover)

    @property
    def cover(self) -> Cover:
        """What protects the streak."""
        settings = self.settings
        freezes = net_freezes(self._freezes)
        return Cover(freezes, settings.pauses_after, self._skipped(), opening=settings.opening)

    @property
    def active(self) -> set[date]:
        """The active dates so far."""
        return {
            outcome.day
            for outcome in self.outcomes
            if outcome.is_active and outcome.row.event_id not in self._taken_back
        }

    def _skipped(self) -> frozenset[date]:
        """Return the dates that are no misses: where dates are placed anew, flights may leave out others."""
        if not self._placed_dates:
            return self.settings.skipped
        earns = [row for row in self.rows if row.kind == EntryKind.EARN]
        flight_gaps = flight_gap_dates([(row.event_id, row.day) for row in earns if not row.is_passive], {})
        zones = {row.zone for row in earns if row.zone}
        zones_after = {
            outcome.row.zone for outcome in self.outcomes if outcome.points is not None and outcome.row.zone
        }
        # What is left are dates of an amnesty and the like.
        others = self.settings.skipped.difference(flight_gaps, *map(_skipped_in, zones))
        return others.union(self._placed_dates.flight_gaps, *map(_skipped_in, zones_after))

    def _earn(self, rows: Iterable[Row], placed: Mapping[str, date]) -> None:
        """Apply the entries of events. placed: by event, the dates that are not those of the ledger."""
        for row in rows:
            terms = self._terms[row.event_id]
            ruling = terms.ruling
            if ruling.is_refused:
                self.outcomes.append(Outcome(row, terms, row.day, None))
                self._differences[row.points, row.expires_on] -= 1
                continue
            day = placed.get(row.event_id) or row.day
            points = row.points
            if not self._keeps_points:
                worth = points if ruling.points is None else ruling.points
                points = self._capped.award(row.event_type, day, worth, terms.cap)
            self.sum += points
            self.outcomes.append(Outcome(row, terms, day, points))
            ends = None if ruling.is_new else row.expires_on
            if ends is None and ruling.expiry:
                ends = terms.end_of(day)
            if ends and points:
                self.lots[ends] += points
            if points != row.points or ends != row.expires_on:
                self._differences[points, ends] += 1
                self._differences[row.points, row.expires_on] -= 1
            if self._rates_anew:
                self._drafts.append(_earn_draft(row, terms, day, points, ends if points else None))

    def _claw_back(self, row: Row) -> None:
        """Take back an event (rule 12). The entries that follow from that are worked out anew."""
        self._differences[row.points, row.expires_on] -= 1
        if self._placed_dates:
            self._placed_dates.take_back(row, self.outcomes)
        if not self._rates_anew:
            self._taken_back.add(row.event_id)
            self._correct(row, [_correction(row)])
            return
        drafts_of_event = [draft for draft in self._drafts if draft.event_id == row.event_id]
        if len(drafts_of_event) == 1:  # an event that has not counted is not taken back
            self._taken_back.add(row.event_id)
            books = PredictedBooks(self.timeline, row.at)
            # The entry's place and reason change no points, so they stay empty.
            self._correct(row, clawback(drafts_of_event[0], "", self._drafts, books, ""))

    def _rerate(self, row: Row) -> None:
        """Add what is lacking by the versions that are known, from a date's week on (rule 12)."""
        self._differences[row.points, row.expires_on] -= 1
        if not self._rates_anew:
            self._correct(row, [_correction(row)])
        elif first := self._rerated.get(row.created_at):
            since, books = monday_of(first), PredictedBooks(self.timeline, row.at)
            entries = [
                draft for draft in self._drafts if is_earning(draft) and monday_of(_day_of(draft)) >= since
            ]
            self._correct(row, balancing_entries(shortfalls(entries, books), books.newest.number, ""))

    def _correct(self, row: Row, drafts: Sequence[Draft]) -> None:
        """Apply corrections in the place of a row."""
        self._drafts += drafts
        for draft in drafts:
            self.sum += draft.points
            ends = date.fromisoformat(draft.expires_on) if draft.expires_on else None
            self._differences[draft.points, ends] += 1
            if ends and draft.points:
                self.lots[ends] += draft.points
            if draft.cap:
                self._capped.add(draft.event_type or "", _day_of(draft), draft.cap, draft.points)
            if draft.kind is EntryKind.CLAWBACK and self._placed_dates:
                self._placed_dates.count(row, draft)
            self.corrected.append(draft)

    def _redeem(self, row: Row) -> None:
        """Spend points on a reward, hold or freeze at the book's price, if that was possible."""
        at, price = row.counts_at, -row.points
        is_freeze = row.freeze == FreezeNote.GRANTED
        if row.is_price:
            price_or_reason = self.timeline.price(row.reward_id or "", price, row.at)
            if isinstance(price_or_reason, str):
                self._refuse(row, "redemption", price, 0, price_or_reason)
                return
            price = price_or_reason
        if is_freeze:
            price = self._price(row)
            if why := self._too_many(row):
                self._refuse(row, "freeze", price, 0, why)
                return
        if price != -row.points:
            self._differences[-price, None] += 1
            self._differences[row.points, None] -= 1
        missing = self._missing(price, self.sum, at)
        if price and missing > 0:
            what = "freeze" if is_freeze else "hold" if row.held_at else "redemption"
            self._refuse(row, what, price, missing, "the balance would not have covered it")
            return
        if is_freeze:
            self._take(row)
        self.sum -= price
        self.moves[row.place] = (at, price)
        if row.held_at:
            self._held[row.place] = price

    def _missing(self, price: int, balance: int, now: datetime) -> int:
        """Return how many points are missing; 0 or below for none. balance: with what has expired."""
        if not any(count for (points, _), count in self._differences.items() if points):
            return 0  # nothing differs so far, so it was possible
        return price - balance + self._expired(now)

    def _expired(self, now: datetime) -> int:
        """Return what has expired by an instant."""
        return expired_points(self.lots, list(self.moves.values()), now)

    def _capture(self, row: Row) -> None:
        """Spend what was held, if a clawback has left enough. Otherwise the hold is released."""
        if (price := self._held.get(row.place)) is None:
            return
        # What is held is still part of the balance.
        missing = self._missing(price, self.sum + sum(self._held.values()), row.at)
        del self._held[row.place]
        if price and missing > 0:
            self.moves.pop(row.place, None)
            self.sum += price
            self._refuse(row, "hold", price, missing, "what was taken back would have left too little of it")

    def _refuse(self, row: Row, what: str, price: int, missing: int, why: str) -> None:
        """Note that something would have been impossible. The arguments are the fields of ImpossibleAct."""
        at = stamp(row.counts_at)
        self.impossible.append(ImpossibleAct(self.user_id, what, at, price, missing, why))
        self._undone.add(row.place)
        self._differences[row.points, None] -= 1

    def _reverse(self, row: Row) -> None:
        """Undo a redemption, if it was possible. A spent freeze that comes back has no points."""
        undone = row.reverses or ""
        if undone in self.moves:
            _, price = self.moves.pop(undone)
            self.sum += price
            if row.freeze == FreezeNote.REVOKED and undone in self._granted:
                self._freezes.append((self._gone_from(row, self._granted.pop(undone)), -1))
        elif undone not in self._undone and not row.freeze:
            self._other(row)

    def _other(self, row: Row) -> None:
        """Take an entry of another kind as it is. A freeze may have come with an opening position."""
        self.sum += row.points
        if row.freeze == FreezeNote.GRANTED and row.freeze_date:
            self._freezes.append((row.freeze_date, 1))

    def _ignore(self, row: Row) -> None:
        """An expiry follows from the rest."""

    def _price(self, row: Row) -> int:
        """Return what a freeze costs: nothing as a gift or one of the month's free ones, else its price."""
        if self._is_gift(row):
            return 0
        _, free_after = self._free[row.month]
        return self.timeline.freezes(row.at).price(free_after)

    def _is_gift(self, row: Row) -> bool:
        """Whether a freeze that cost nothing was a gift, because the month's free ones were used up."""
        real = self.timeline.real_at(row.at).freezes
        free_before, _ = self._free[row.month]
        return row.points == 0 and free_before >= real.free_a_month and bool(real.price_points)

    def _take(self, row: Row) -> None:
        """Take a freeze: count it if it is one of the month's free ones, and let it protect its date."""
        at, day = row.at, row.freeze_date
        free, is_gift = self._free[row.month], self._is_gift(row)
        # Only a free one that the month still has is one of the month's: another may cost nothing, too.
        free[0] += row.points == 0 and free[0] < self.timeline.real_at(at).freezes.free_a_month
        free[1] += not is_gift and free[1] < self.timeline.freezes(at).free_a_month
        if day:
            self._freezes.append((day, 1))
            self._granted[row.place] = day

    @property
    def _is_as_it_was(self) -> bool:
        """Whether active dates, freezes and pauses have been so far what they were."""
        settings = self.settings
        return not (self.has_changed or self.impossible or settings.pauses != settings.pauses_after)

    def _too_many(self, row: Row) -> str:
        """Return why no further freeze may be held; "" if one may. A gift for a certain date always may."""
        at, day = row.at, row.freeze_date
        if day is None or abs(day - at.astimezone(UTC).date()) > USUAL_FREEZE_SPAN:
            return ""
        terms = self.timeline.freezes(at)
        if self._is_as_it_was and terms == self.timeline.real_at(at).freezes:
            return ""  # as many were held then
        cover = self.cover
        streak = fold(self.active, cover)
        held = shown_streak(streak, cover, max(day, streak.last) if streak else day).freezes_available
        most = terms.held_max
        return f"{held} freezes would have been held, and {most} may be" if held >= most else ""

    def _gone_from(self, row: Row, granted: date) -> date:
        """Return from which date on a returned freeze is gone.

        It is the ledger's date, unless the freeze was used on another date than there.
        """
        stored = row.freeze_date
        if stored and self._is_as_it_was:
            return stored
        gone = return_date(fold(self.active, self.cover), self.cover, granted, row.at.astimezone(UTC).date())
        return stored if stored and granted not in (gone, stored) else gone


def rerated_since(rows: Iterable[Row]) -> dict[int, date]:
    """Return for each time that a ledger was rated anew the earliest date of which it was.

    The keys are created_at of the first RERATE entry of each time. rows: in the order of the ledger. The
    RERATE entries of a CLAWBACK's transaction are left out, because they belong to that.
    """
    first_dates: dict[int, date] = {}
    rerated: list[Row] = []
    for row in (*rows, None):
        if row is not None and row.kind == EntryKind.RERATE:
            rerated.append(row)
            continue
        if row is not None and row.kind == EntryKind.CLAWBACK:
            at = row.created_at
            while rerated and rerated[-1].created_at == at - 1:
                at = rerated.pop().created_at
        if rerated:
            first_dates[rerated[0].created_at] = min(entry.day for entry in rerated)
        rerated.clear()
    return first_dates


def _earn_draft(row: Row, terms: Terms, day: date, points: int, ends: date | None) -> Draft:
    """Return the entry of an event under the timeline's books. ends: when its points expire."""
    ruling = terms.ruling
    number = (row.version or None) if ruling.points is None else ruling.version
    return Draft(
        *(EntryKind.EARN, points, row.event_id, row.event_type, day.isoformat()),
        rules_version=CANDIDATE if ruling.is_new and number is None else number,
        cap=terms.cap,
        is_passive=not terms.is_active,
        expires_on=ends.isoformat() if ends else None,
    )


def _correction(row: Row) -> Draft:
    """Return an entry of CLAWBACK or RERATE as the ledger has it."""
    return Draft(
        *(EntryKind(row.kind), row.points, row.event_id, row.event_type, row.day.isoformat()),
        cap=Cap.of(row.cap),
        is_passive=row.is_passive,
        expires_on=row.expires_on.isoformat() if row.expires_on else None,
    )


def _day_of(draft: Draft) -> date:
    return date.fromisoformat(draft.activity_date or "")


def _skipped_in(zone: str) -> frozenset[date]:
    try:
        return skipped_dates(zone)
    except UnknownZone:
        return NO_DATES


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield the entries of each transaction: their places are a microsecond apart."""
    batch: list[Row] = []
    for row in rows:
        if batch and row.created_at - batch[-1].created_at != 1:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch
