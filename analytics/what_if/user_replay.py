"""Replays one user's history under other books: what events would earn, and what would have been possible.

counted_users.py makes a `UserReplay` of a user's rows, calls `replay`, and reads what came out: `world`,
`outcomes`, `corrected` and `impossible`. The replay goes through the ledger in order, with a method for each
kind of entry. Until the first difference from what happened, each redemption was possible. After it, the
rules decide. Freezes and the dates of doubtful events have classes of their own, below.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import NamedTuple

from analytics.what_if.figures import ImpossibleAct
from analytics.what_if.timeline import CANDIDATE, NotOffered, PredictedBooks, RulingTerms, TermsMemo, Timeline
from analytics.what_if.user_history import NO_DATES, LedgerRow, MeasuresMemo, UserSettings, World
from rules.book.point_rules import Cap
from rules.book.rewards import REPAIR_REWARD
from rules.days import DAY, UnknownZone, skipped_dates, stamp
from rules.engagement.account import days_with_entries
from rules.engagement.account_state import Day
from rules.engagement.earnings import CappedPoints, assign_dates, dates_beside, flight_gap_dates, monday_of
from rules.engagement.events import Event
from rules.engagement.ledger import (
    CORRECTIONS,
    Draft,
    Entry,
    EntryKind,
    FreezeNote,
    InsufficientBalance,
    check_covered,
)
from rules.engagement.lots import Spending, expired_points
from rules.engagement.points import balancing_entries, clawback, is_earning, shortfalls
from rules.engagement.repairs import NotRepairable, Repair, newest_break, offered_repair
from rules.engagement.rest_days import RestDays
from rules.engagement.spending import FreezesHeldMax, check_freeze, spendable
from rules.engagement.streak import Cover, fold, net_freezes, opening_streak, revocation_date

CAPTURE = "CAPTURE"  # the kind of a step that is no entry: held points are spent
NO_NEW_DATES: Mapping[str, date] = {}
# A freeze for a date that is farther from the day of its entry is a gift for that date.
USUAL_FREEZE_SPAN = timedelta(days=1)


class JudgedEvent(NamedTuple):
    """The outcome of one event under the books of a timeline."""

    row: LedgerRow
    terms: RulingTerms
    day: date  # the date that it counts for
    points: int | None  # None: it is refused

    @property
    def is_active(self) -> bool:
        """Whether it keeps a streak."""
        return self.points is not None and self.terms.is_active


class UserReplay:
    """The replay of one user's ledger under the books of a timeline."""

    def __init__(
        self,
        rows: Sequence[LedgerRow],
        timeline: Timeline,
        terms_of: TermsMemo,
        measures_of: MeasuresMemo,
        settings: UserSettings,
    ) -> None:
        """Prepare the replay. rows: all of one user, at least one, in the ledger's order."""
        self.rows, self.timeline, self.settings = rows, timeline, settings
        self.user_id = rows[0].user_id
        self.outcomes: list[JudgedEvent] = []  # of the events
        self.corrected: list[Draft] = []  # the CLAWBACK and RERATE entries that there would be
        self.impossible: list[ImpossibleAct] = []
        # What does not change during the replay
        self._measures_of = measures_of
        self._terms = {
            row.event_id: terms_of[row.terms_key].at(row.created_at)
            for row in rows
            if row.kind == EntryKind.EARN
        }
        corrections = [row for row in rows if row.kind in CORRECTIONS]
        is_judged_anew = any(terms.ruling.is_new for terms in self._terms.values())
        # If the candidate judges no event of a user, points stay as they are. Caps are not filled anew then,
        # because corrections between the events have changed what was left of them.
        self._keeps_points = not is_judged_anew and bool(timeline.candidate or corrections)
        self._rates_anew = bool(corrections) and not self._keeps_points
        self._rerated = rerated_since(rows) if self._rates_anew else {}
        # Whether an event keeps a streak that did not, or the other way round
        self._changes_activity = any(terms.is_active != terms.was_active for terms in self._terms.values())
        # The state of the replay
        self._full_balance = 0  # points, without the expiries: _expired computes these
        self._lots: dict[date, int] = defaultdict(int)  # points by the date on which they expire
        self._spendings: dict[str, Spending] = {}  # by place
        self._held: dict[str, int] = {}  # points of holds, by place
        self._capped = CappedPoints()
        self._freezes = Freezes(timeline)
        self._repaired_until = {
            row.place: max(other.freeze_date or date.min for other in batch)
            for batch in _batches(row for row in rows if row.is_repair)
            for row in batch
        }
        self._drafts: list[Draft] = []  # all entries so far, if corrections are computed anew from them
        self._clawed_back: set[str] = set()  # ids of the events that a CLAWBACK has reversed
        self._impossible_places: set[str] = set()  # of entries that would have been impossible
        # How many more entries there would be than there are, by their points and the date on which these
        # expire. All are zero while nothing differs.
        self._differences = Counter[tuple[int, date | None]]()
        # None: the events stay on the dates of the ledger
        is_placed_anew = self._changes_activity and settings.is_doubtful
        self._placed_dates = PlacedDates(self.user_id) if is_placed_anew else None

    def replay(self) -> "UserReplay":
        """Replay all rows in order; returns itself."""
        steps = {
            EntryKind.REDEEM: self._redeem,
            EntryKind.REVERSE: self._reverse,
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
            elif kind != EntryKind.EXPIRE:  # `_expired` computes expiries
                step = steps.get(kind, self._keep)
                for row in rows:
                    step(row)
        return self

    def _in_order(self) -> Sequence[LedgerRow]:
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
        """Return the points and the streak that the user would have."""
        of_events = sum(outcome.points or 0 for outcome in self.outcomes)
        bonuses = sum(row.points for row in self.rows if row.kind == EntryKind.BONUS)
        earned = of_events + sum(draft.points for draft in self.corrected) + bonuses
        expired = self._expired(now)
        return World(earned, self._full_balance - expired, expired, self.active, self.cover)

    @property
    def cover(self) -> Cover:
        """What protects the streak."""
        settings = self.settings
        freezes = net_freezes(self._freezes.changes)
        rest = RestDays(self.timeline.predicted_terms, settings.chosen)
        return Cover(freezes, settings.pauses_after, self._skipped(), opening=settings.opening, rest=rest)

    @property
    def active(self) -> set[date]:
        """The active dates so far."""
        return {
            outcome.day
            for outcome in self.outcomes
            if outcome.is_active and outcome.row.event_id not in self._clawed_back
        }

    def _skipped(self) -> frozenset[date]:
        """Return the dates that are no misses. Flights may leave out others if dates are placed anew."""
        if not self._placed_dates:
            return self.settings.skipped
        earns = [row for row in self.rows if row.kind == EntryKind.EARN]
        flight_gaps = flight_gap_dates([(row.event_id, row.day) for row in earns if not row.is_passive], {})
        zones = {row.zone for row in earns if row.zone}
        zones_after = {
            outcome.row.zone for outcome in self.outcomes if outcome.points is not None and outcome.row.zone
        }
        # The other skipped dates, such as those of an amnesty, do not depend on events.
        others = self.settings.skipped.difference(flight_gaps, *map(_skipped_in, zones))
        return others.union(self._placed_dates.flight_gaps, *map(_skipped_in, zones_after))

    def _earn(self, rows: Iterable[LedgerRow], placed: Mapping[str, date]) -> None:
        """Apply the entries of events. placed: the dates of events that were placed anew, by event id."""
        for row in rows:
            terms = self._terms[row.event_id]
            ruling = terms.ruling
            if ruling.is_refused:
                self.outcomes.append(JudgedEvent(row, terms, row.day, None))
                self._differences[row.points, row.expires_on] -= 1
                continue
            day = placed.get(row.event_id) or row.day
            points = row.points
            if not self._keeps_points:
                worth = ruling.points_of(self._measures_of(row, terms))
                worth = points if worth is None else worth
                points = self._capped.award(row.event_type, day, worth, terms.cap)
            self._full_balance += points
            self.outcomes.append(JudgedEvent(row, terms, day, points))
            ends = None if ruling.is_new else row.expires_on
            if ends is None and ruling.expiry:
                ends = terms.expiry_date(day)
            if ends and points:
                self._lots[ends] += points
            if points != row.points or ends != row.expires_on:
                self._differences[points, ends] += 1
                self._differences[row.points, row.expires_on] -= 1
            if self._rates_anew:
                draft = _earn_draft(row, terms, day, points, ends if points else None)
                self._drafts.append(replace(draft, measures=self._measures_of(row, terms)))

    def _claw_back(self, row: LedgerRow) -> None:
        """Reverse an event (rule 12). The entries that follow from that are computed anew."""
        self._differences[row.points, row.expires_on] -= 1
        if self._placed_dates:
            self._placed_dates.claw_back(row, self.outcomes)
        if not self._rates_anew:
            self._clawed_back.add(row.event_id)
            self._correct(row, [_correction(row)])
            return
        drafts_of_event = [draft for draft in self._drafts if draft.event_id == row.event_id]
        if len(drafts_of_event) == 1:  # an event that was refused cannot be reversed
            self._clawed_back.add(row.event_id)
            books = PredictedBooks(self.timeline, row.at)
            # The entry's place and reason change no points, so they stay empty.
            self._correct(row, clawback(drafts_of_event[0], "", self._drafts, books, ""))

    def _rerate(self, row: LedgerRow) -> None:
        """Add the points that are lacking by the versions known then, from a date's week on (rule 12)."""
        self._differences[row.points, row.expires_on] -= 1
        if not self._rates_anew:
            self._correct(row, [_correction(row)])
        elif first := self._rerated.get(row.created_at):
            since, books = monday_of(first), PredictedBooks(self.timeline, row.at)
            entries = [
                draft for draft in self._drafts if is_earning(draft) and monday_of(_day_of(draft)) >= since
            ]
            self._correct(row, balancing_entries(shortfalls(entries, books), books.newest.number, ""))

    def _correct(self, row: LedgerRow, drafts: Sequence[Draft]) -> None:
        """Apply corrections in the place of a row of the ledger."""
        self._drafts += drafts
        for draft in drafts:
            self._full_balance += draft.points
            ends = date.fromisoformat(draft.expires_on) if draft.expires_on else None
            self._differences[draft.points, ends] += 1
            if ends and draft.points:
                self._lots[ends] += draft.points
            if draft.cap:
                self._capped.add(draft.event_type or "", _day_of(draft), draft.cap, draft.points)
            if draft.kind is EntryKind.CLAWBACK and self._placed_dates:
                self._placed_dates.count(row, draft)
            self.corrected.append(draft)

    def _redeem(self, row: LedgerRow) -> None:
        """Spend points on a reward, hold or freeze at the book's price, if that was possible."""
        at, price = row.counts_at, -row.points
        is_freeze = row.freeze == FreezeNote.GRANTED
        what = "repair" if row.is_repair else "freeze"
        if row.is_price:
            try:
                price = self.timeline.price(row.reward_id or "", price, row.at)
            except NotOffered as reason:
                self._refuse(row, "redemption", price, 0, str(reason))
                return
        if is_freeze:
            price = self._freezes.price(row)
            if why := self._repair_refusal(row) if row.is_repair else self._freeze_refusal(row):
                self._refuse(row, what, price, 0, why)
                return
        if price != -row.points:
            self._differences[-price, None] += 1
            self._differences[row.points, None] -= 1
        if missing := self._missing_points(price, at, is_capture=False):
            what = what if is_freeze else "hold" if row.held_at else "redemption"
            self._refuse(row, what, price, missing, "the balance would not have covered it")
            return
        if is_freeze:
            self._freezes.take(row)
        self._full_balance -= price
        self._spendings[row.place] = Spending(at, price)
        if row.held_at:
            self._held[row.place] = price

    def _missing_points(self, price: int, now: datetime, *, is_capture: bool) -> int:
        """Return how many points are missing; 0 if the balance covers the price."""
        if not any(count for (points, _), count in self._differences.items() if points):
            return 0  # nothing differs so far, so it is possible as it was
        # The points of all holds are subtracted from _full_balance, but not spent yet.
        reserved = sum(self._held.values())
        balance = self._full_balance + reserved - self._expired(now)
        try:
            check_covered(price, spendable(balance, reserved, is_capture=is_capture))
        except InsufficientBalance as refused:
            return refused.wanted - refused.balance
        return 0

    def _expired(self, now: datetime) -> int:
        """Return how many points have expired by an instant."""
        return expired_points(self._lots, list(self._spendings.values()), now)

    def _capture(self, row: LedgerRow) -> None:
        """Spend held points, if clawbacks have left enough of them. Otherwise the hold is released."""
        if (price := self._held.get(row.place)) is None:
            return
        missing = self._missing_points(price, row.at, is_capture=True)
        del self._held[row.place]
        if missing:
            self._spendings.pop(row.place, None)
            self._full_balance += price
            self._refuse(row, "hold", price, missing, "what was taken back would have left too little of it")

    def _refuse(self, row: LedgerRow, what: str, price: int, missing: int, why: str) -> None:
        """Note that something would have been impossible. The arguments are the fields of ImpossibleAct."""
        at = stamp(row.counts_at)
        self.impossible.append(ImpossibleAct(self.user_id, what, at, price, missing, why))
        self._impossible_places.add(row.place)
        self._differences[row.points, None] -= 1

    def _reverse(self, row: LedgerRow) -> None:
        """Undo a redemption, if it was possible. A spent freeze that is returned has no points."""
        undone = row.reverses or ""
        if self._is_repair_needed(row):
            self._differences[row.points, None] -= 1
        elif undone in self._spendings:
            price = self._spendings.pop(undone).points
            self._full_balance += price
            if row.freeze == FreezeNote.REVOKED and (granted := self._freezes.pop_date(undone)):
                self._freezes.changes.append((self._revoked_on(row, granted), -1))
        elif undone not in self._impossible_places and not row.freeze:
            self._keep(row)

    def _keep(self, row: LedgerRow) -> None:
        """Apply an entry of another kind unchanged. An opening position may have brought a freeze."""
        self._full_balance += row.points
        if row.freeze == FreezeNote.GRANTED and row.freeze_date:
            self._freezes.changes.append((row.freeze_date, 1))

    @property
    def _is_as_it_was(self) -> bool:
        """Whether active dates, freezes, pauses and rest days have not differed so far."""
        settings, timeline = self.settings, self.timeline
        if timeline.real.daily_terms != timeline.predicted_terms:
            return False
        return not (self._changes_activity or self.impossible or settings.pauses != settings.pauses_after)

    def _freeze_refusal(self, row: LedgerRow) -> str:
        """Return why no further freeze may be held; "" if one may. A gift for a certain date may always."""
        at, day = row.at, row.freeze_date
        if day is None or abs(day - at.astimezone(UTC).date()) > USUAL_FREEZE_SPAN:
            return ""
        terms = self.timeline.book_at(at).freezes
        if self._is_as_it_was and terms == self.timeline.real_at(at).freezes:
            return ""  # nothing differs, and then it was allowed
        try:
            check_freeze(fold(self.active, self.cover), self.cover, day, terms)
        except FreezesHeldMax as refused:
            return f"{refused.held} freezes would have been held, and {refused.most} may be"
        return ""

    def _repair_refusal(self, row: LedgerRow) -> str:
        """Return why a date may not be repaired; "" if it may."""
        at, day = row.at, row.freeze_date or date.max
        terms, real = self.timeline.book_at(at).repairs, self.timeline.real_at(at).repairs
        if self._is_as_it_was and replace(terms, price_points=0) == replace(real, price_points=0):
            return ""  # nothing differs, and then it was allowed
        # The dates that were bought at once were over for the user. Otherwise nobody knows which date it was;
        # the earliest counts.
        today = max(self._repaired_until[row.place] + DAY, at.astimezone(UTC).date() - DAY)
        run = newest_break(self.active, opening_streak(self.cover), self.cover, today)
        try:
            offer = offered_repair(run, self.cover, self._freezes.repairs, terms, today)
        except NotRepairable as refused:
            return str(refused)
        return "" if day in offer.dates else f"{day} would not have been missed"

    def _is_repair_needed(self, row: LedgerRow) -> bool:
        """Whether an entry gives a repair back, because an event made it needless, and that event is none."""
        repair = self._freezes.repair_at(row.reverses or "")
        if repair is None or row.freeze_date != repair.day or self._is_as_it_was:
            return False
        return repair.day not in self.active and repair.day not in self._skipped()

    def _revoked_on(self, row: LedgerRow, granted: date) -> date:
        """Return the date from which on a returned freeze is gone.

        It is the ledger's date, unless the freeze was used on another date than in the ledger.
        """
        stored = row.freeze_date
        is_repair = row.reward_id == REPAIR_REWARD and stored == granted
        if stored and (self._is_as_it_was or is_repair):
            return stored
        streak = fold(self.active, self.cover)
        predicted = revocation_date(streak, self.cover, granted, row.at.astimezone(UTC).date())
        return stored if stored and granted not in (predicted, stored) else predicted


def rerated_since(rows: Iterable[LedgerRow]) -> dict[int, date]:
    """Return the earliest date that each rerate of a ledger has changed.

    A rerate is a series of RERATE entries, and the keys are created_at of its first one. rows: in the order
    of the ledger. The RERATE entries in the transaction of a CLAWBACK belong to it, and are left out.
    """
    first_dates: dict[int, date] = {}
    rerated: list[LedgerRow] = []
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


def _earn_draft(row: LedgerRow, terms: RulingTerms, day: date, points: int, ends: date | None) -> Draft:
    """Return the entry of an event under the timeline's books. ends: when its points expire."""
    ruling = terms.ruling
    number = (row.version or None) if ruling.is_as_entry_says else ruling.version
    return Draft(
        *(EntryKind.EARN, points, row.event_id, row.event_type, day.isoformat()),
        rules_version=CANDIDATE if ruling.is_new and number is None else number,
        cap=terms.cap,
        is_passive=not terms.is_active,
        expires_on=ends.isoformat() if ends else None,
    )


def _correction(row: LedgerRow) -> Draft:
    """Return an entry of CLAWBACK or RERATE as the ledger has it."""
    return Draft(
        *(EntryKind(row.kind), row.points, row.event_id, row.event_type, row.day.isoformat()),
        cap=Cap.of(row.cap),
        is_passive=row.is_passive,
        expires_on=row.expires_on.isoformat() if row.expires_on else None,
    )


def _day_of(draft: Draft) -> date:
    return date.fromisoformat(draft.activity_date or "")


@dataclass(slots=True)
class FreeFreezes:
    """How many of a month's free freezes were taken."""

    in_ledger: int = 0
    under_books: int = 0  # of the timeline


class Freezes:
    """The freezes of one user under the books of a timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self.changes: list[tuple[date, int]] = []  # (from which date on, one more or one less)
        self.repairs: list[Repair] = []  # those that were not given back
        self._date_of: dict[str, date] = {}  # of freezes that were taken, by place
        self._free_taken: dict[str, FreeFreezes] = defaultdict(FreeFreezes)  # by YYYY-MM

    def price(self, row: LedgerRow) -> int:
        """Return what a freeze costs: nothing as a gift or one of the month's free ones, else its price."""
        if row.is_repair:
            return self._timeline.book_at(row.at).repairs.price_points
        if self._is_gift(row):
            return 0
        return self._timeline.book_at(row.at).freezes.price(self._free_taken[row.month].under_books)

    def _is_gift(self, row: LedgerRow) -> bool:
        """Whether a freeze that cost nothing was a gift, because the month's free ones were used up."""
        real = self._timeline.real_at(row.at).freezes
        are_used_up = self._free_taken[row.month].in_ledger >= real.free_a_month
        return row.points == 0 and are_used_up and bool(real.price_points)

    def take(self, row: LedgerRow) -> None:
        """Take a freeze: count it if it is one of the month's free ones, and let it protect its date."""
        if row.is_repair and row.freeze_date:
            self.repairs.append(Repair(row.freeze_date, -row.points, row.place))
            self.changes.append((row.freeze_date, 1))
            self._date_of[row.place] = row.freeze_date
            return
        free, is_gift = self._free_taken[row.month], self._is_gift(row)
        free_before = self._timeline.real_at(row.at).freezes.free_a_month
        free_after = self._timeline.book_at(row.at).freezes.free_a_month
        # A freeze may cost nothing for another reason. It is a free one only if one is left.
        if row.points == 0 and free.in_ledger < free_before:
            free.in_ledger += 1
        if not is_gift and free.under_books < free_after:
            free.under_books += 1
        if row.freeze_date:
            self.changes.append((row.freeze_date, 1))
            self._date_of[row.place] = row.freeze_date

    def repair_at(self, place: str) -> Repair | None:
        """Return the repair that was bought at a place, and is not given back; None if there is none."""
        return next((repair for repair in self.repairs if repair.place == place), None)

    def pop_date(self, place: str) -> date | None:
        """Return the date of the freeze that was taken at a place, and forget it; None if there is none."""
        self.repairs = [repair for repair in self.repairs if repair.place != place]
        return self._date_of.pop(place, None)


class PlacedDates:
    """Places the events of one user on dates anew (rule 8).

    This is needed if some events no longer count, and the dates of the events contradict each other: then
    others of the events may decide on the dates.
    """

    def __init__(self, user_id: str) -> None:
        self._user_id = user_id
        self._days = dict[date, Day]()
        self.flight_gaps = set[date]()  # dates that flights leave out

    def place(self, batch: Sequence[LedgerRow], terms_of: Mapping[str, RulingTerms]) -> dict[str, date]:
        """Return the dates of one transaction's events by event id. Refused events are left out.

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

    def claw_back(self, row: LedgerRow, outcomes: Iterable[JudgedEvent]) -> None:
        """Take the event that a CLAWBACK row names from its day. outcomes: of all events so far."""
        for outcome in outcomes:
            if outcome.row.event_id == row.event_id and outcome.points is not None:
                self.count(row, _day_draft(EntryKind.CLAWBACK, row, outcome.day, not outcome.is_active))

    def count(self, row: LedgerRow, draft: Draft) -> None:
        """Count an entry into its day. row: has the entry's place in the ledger."""
        self._days |= days_with_entries(self._days, [Entry(self._user_id, row.place, row.seq, 0, draft)])

    def _event(self, row: LedgerRow, terms: RulingTerms) -> Event:
        # assign_dates reads the id, the date and whether the event is passive. The rest is left empty.
        values = (row.event_id, "", row.event_type, row.event_id, row.claimed or row.day)
        return Event(self._user_id, *values, "UTC", 0, "", "", is_passive=not terms.is_active)


def _day_draft(kind: EntryKind, row: LedgerRow, day: date, is_passive: bool) -> Draft:
    """Return an entry that changes an event's day, and has no points."""
    return Draft(kind, 0, row.event_id, row.event_type, day.isoformat(), is_passive=is_passive)


def _batches(rows: Iterable[LedgerRow]) -> Iterator[list[LedgerRow]]:
    """Yield the entries of each transaction: they were written a microsecond apart."""
    batch: list[LedgerRow] = []
    for row in rows:
        if batch and row.created_at - batch[-1].created_at != 1:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _skipped_in(zone: str) -> frozenset[date]:
    try:
        return skipped_dates(zone)
    except UnknownZone:
        return NO_DATES
