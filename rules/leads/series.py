"""The state from which a lead's features are computed: one series for each input, small enough to be stored.

A series of purchases or of sentiment has totals, the first and the last date that counts, and sums by
date for the dates that a window may still need. It also has the marks of a few events, by which an event
that comes again is recognised. When a mark leaves, a note of its event is stored
(adapters.leads.counted_events.CountedEvents). A note is looked up only for events as old as that. Activity
needs its first and last date alone, which a repeated event does not change.

Apart from marks, a state follows from the set of events, whatever their order, and from its newest date.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import accumulate
from typing import TypeVar

from rules.days import EPOCH, MICROSECOND, unstamp
from rules.leads.features import CAMPAIGN_DAYS_MAX, FEATURES, TRIGGERS, Contact, Feature, Input
from rules.leads.lead_events import (
    ACTIVITY_TYPES,
    CAMPAIGN_TYPES,
    ORDER_SIGNS,
    LeadEvent,
    MalformedLeadEvent,
    campaign_of,
    sentiment_of,
)

SEEN_MAX = 16  # marks of a series
MARKS_DROPPED = 8  # marks that leave at once, so that one bulk write notes eight events
# The largest amount that doors accept: sums of thousands of them fit into the lake's 64 bits.
AMOUNT_MINOR_MAX = 10**15
ID_CHARACTERS = 12  # of an event's id in its mark
CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)
Mark = tuple[int, str]  # microseconds since the epoch, the beginning of the event's id
Sums = tuple[int, int]  # count, amount
K = TypeVar("K")
SERIES = (Input.PURCHASES, Input.SENTIMENT, Input.ACTIVITY)


def kept_days(features: Iterable[Feature]) -> dict[Input, int]:
    """Return, by input, how many dates back the longest window of its features reaches."""
    days = dict.fromkeys(SERIES, 0)
    for feature in features:
        if feature.input in days:
            days[feature.input] = max(days[feature.input], feature.window_days or 0)
    return days


KEPT_DAYS = kept_days(FEATURES)


@dataclass(frozen=True, slots=True)
class Series:
    """The state of one input."""

    count: int = 0  # count, amount: of all time
    amount: int = 0
    first: int = 0  # first, last: dates with a count, as ordinals; 0: none
    last: int = 0
    # (count, amount) by date, as ordinals, of the kept dates only; ascending
    days: dict[int, tuple[int, int]] = field(default_factory=dict)
    seen: tuple[Mark, ...] = ()  # marks, ascending
    # (count, amount) of all time by currency, by name; these are part of count, and not of amount
    foreign: dict[str, tuple[int, int]] = field(default_factory=dict)
    below: Mark | None = None  # the newest mark that has left `seen`; None: none has
    is_noted: bool = True  # whether all events whose marks have left have notes

    def has_left(self, mark: Mark) -> bool:
        """Return whether the mark may have left `seen`, so that only its note shows whether it is counted."""
        return self.below is not None and mark <= self.below and mark not in self.seen

    @property
    def priced(self) -> int:
        """The number of counted orders whose amount is in the organization's own currency."""
        return self.count - sum(count for count, _ in self.foreign.values())


EMPTY_SERIES = Series()
State = Mapping[Input, Series]
EMPTY_STATE: State = dict.fromkeys(SERIES, EMPTY_SERIES)


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one event adds to one input on its date (UTC, an ordinal)."""

    mark: Mark
    day: int
    count: int
    amount: int
    # Currency and amount, if that is not the organization's own; then `amount` is 0
    foreign: tuple[str, int] | None = None


def contributions(event: LeadEvent) -> dict[Input, Contribution]:
    """Return what an event adds, by input; raises MalformedLeadEvent, with the field and the reason."""
    mark, day = mark_of(event.occurred_at, event.id), date.fromisoformat(event.occurred_at[:10]).toordinal()
    added: dict[Input, Contribution] = {}
    if event.event_type in TRIGGERS[Input.PURCHASES]:
        added[Input.PURCHASES] = _purchase(event, mark, day)
    if event.event_type in TRIGGERS[Input.SENTIMENT]:
        milli = sentiment_of(event)
        if milli is not None:
            added[Input.SENTIMENT] = Contribution(mark, day, 1, milli)
    if event.event_type in CAMPAIGN_TYPES:
        campaign_of(event)  # raises: without a campaign's id the event is no activity, either
    if event.event_type in ACTIVITY_TYPES:
        added[Input.ACTIVITY] = Contribution(mark, day, 1, 0)
    return added


def _purchase(event: LeadEvent, mark: Mark, day: int) -> Contribution:
    count, sign = ORDER_SIGNS[event.event_type]
    name = "foreign_minor" if "foreign_minor" in event.payload else "amount_minor"
    amount, currency = event.payload.get(name), event.payload.get("currency")
    if type(amount) is not int or not 0 <= amount <= AMOUNT_MINOR_MAX:
        raise MalformedLeadEvent(f"{name} is no whole number from 0 to {AMOUNT_MINOR_MAX}")
    if name == "amount_minor":
        return Contribution(mark, day, count, sign * amount)
    if not isinstance(currency, str) or CURRENCY.fullmatch(currency) is None:
        raise MalformedLeadEvent("currency is no code of ISO 4217")
    return Contribution(mark, day, count, 0, (currency, sign * amount))


def mark_of(occurred_at: str, event_id: str) -> Mark:
    """Return an event's mark: its time, and the beginning of its id."""
    return (unstamp(occurred_at) - EPOCH) // MICROSECOND, event_id.replace("-", "")[:ID_CHARACTERS]


def add_contribution(
    series: Series, input_: Input, contribution: Contribution, as_of: datetime, *, has_note: bool = False
) -> Series | None:
    """Return the series with one event more, as of an instant that is never before an earlier one.

    has_note: whether the event has a note; it matters only if has_left(). It returns the same series if the
    event is in it already, and None if the series has to be built again. That is so if marks have left
    without notes, so that the event may be in or not. Or if the event takes back the first or last order, and
    the next one is older than all dates that are kept.
    """
    day, mark = contribution.day, contribution.mark
    if input_ is Input.ACTIVITY:
        first, last = min(series.first or day, day), max(series.last, day)
        return series if (first, last) == (series.first, series.last) else Series(first=first, last=last)
    if mark in series.seen:
        return series
    if series.has_left(mark):
        if has_note:
            return series
        if not series.is_noted:
            return None
    rolled = drop_old_dates(series, input_, as_of)
    is_kept = day > as_of.toordinal() - KEPT_DAYS[input_] or day in rolled.days
    span_with = _span_with_kept_date if is_kept else _span_with_old_date
    span = span_with(rolled, contribution)
    if span is None:
        return None
    days = rolled.days
    if is_kept:
        days = _sum_by_key(days, {day: (contribution.count, contribution.amount)})
    # Only marks that were stored before may leave: a note says for good that the state has the event.
    leaving = rolled.seen[:MARKS_DROPPED] if len(rolled.seen) >= SEEN_MAX else ()
    return Series(
        rolled.count + contribution.count,
        rolled.amount + contribution.amount,
        *span,
        days,
        tuple(sorted((*rolled.seen[len(leaving) :], mark))),
        _add_foreign(rolled.foreign, [contribution]),
        max(filter(None, (rolled.below, *leaving)), default=None),
        rolled.is_noted,
    )


def _span_with_kept_date(series: Series, contribution: Contribution) -> tuple[int, int] | None:
    """Return the first and the last date that count, after an event of a date whose sums are kept."""
    first, last, day = series.first, series.last, contribution.day
    if not contribution.count:
        return first, last
    if series.days.get(day, (0, 0))[0] + contribution.count > 0:
        return min(first or day, day), max(last, day)
    if day not in (first, last):
        return first, last
    if first == last:
        return 0, 0
    # The event takes back the only orders of the first or last date: the next date that counts replaces it.
    others = [other for other, (count, _) in series.days.items() if count > 0 and other != day]
    if not others:
        return None
    return (min(others) if day == first else first), (max(others) if day == last else last)


def _span_with_old_date(series: Series, contribution: Contribution) -> tuple[int, int] | None:
    """Return the first and the last date that count, after an event of a date that is no longer kept."""
    first, last, day = series.first, series.last, contribution.day
    if contribution.count > 0:
        return min(first or day, day), max(last, day)
    return (first, last) if not contribution.count or first < day < last else None


def _sum_by_key(one: Mapping[K, Sums], other: Mapping[K, Sums]) -> dict[K, Sums]:
    """Return the sums of both, by key in order."""
    sums = dict(one)
    for key, (count, amount) in other.items():
        count_before, amount_before = sums.get(key, (0, 0))
        sums[key] = (count_before + count, amount_before + amount)
    return dict(sorted(sums.items()))


def _add_foreign(totals: Mapping[str, Sums], contributions: Iterable[Contribution]) -> dict[str, Sums]:
    """Return totals by foreign currency with some events more, without totals of nothing."""
    for contribution in contributions:
        if contribution.foreign:
            currency, amount = contribution.foreign
            totals = _sum_by_key(totals, {currency: (contribution.count, amount)})
    return {currency: sums for currency, sums in totals.items() if sums != (0, 0)}


def drop_old_dates(series: Series, input_: Input, as_of: datetime) -> Series:
    """Drop the dates that no window reaches any more: they stay in the totals.

    A date whose count is below 0 is kept: an order was cancelled there before its own event came.
    """
    floor = as_of.toordinal() - KEPT_DAYS[input_]
    days = {day: sums for day, sums in series.days.items() if day > floor or sums[0] < 0}
    return replace(series, days=days)


def unite_series(one: Series, other: Series, input_: Input, as_of: datetime) -> tuple[Series, list[Mark]]:
    """Return the series of two leads that are one from now on, and the marks that it has no room for.

    No event is in both. The marks are to be noted once the series is stored.
    """
    marks = sorted({*one.seen, *other.seen})
    leaving, seen = marks[:-SEEN_MAX], marks[-SEEN_MAX:]
    foreign = _sum_by_key(one.foreign, other.foreign)
    united = Series(
        one.count + other.count,
        one.amount + other.amount,
        min(filter(None, (one.first, other.first)), default=0),
        max(one.last, other.last),
        _sum_by_key(drop_old_dates(one, input_, as_of).days, drop_old_dates(other, input_, as_of).days),
        tuple(seen),
        {name: sums for name, sums in foreign.items() if sums != (0, 0)},
        max(filter(None, (one.below, other.below, *leaving)), default=None),
        one.is_noted and other.is_noted and not leaving,
    )
    return united, leaving


def build_state(events: Iterable[LeadEvent], as_of: datetime) -> State:
    """Return the state of all of a lead's events, each of which may be there twice.

    A malformed event adds nothing: it was kept with its reason when it was first processed.
    """
    by_mark: dict[Input, dict[Mark, Contribution]] = {input_: {} for input_ in SERIES}
    for event in events:
        with suppress(MalformedLeadEvent):
            for input_, contribution in contributions(event).items():
                by_mark[input_][contribution.mark] = contribution
    return {input_: _build_series(input_, [*added.values()], as_of) for input_, added in by_mark.items()}


def _build_series(input_: Input, added: list[Contribution], as_of: datetime) -> Series:
    counts = Counter[int]()
    for contribution in added:
        counts[contribution.day] += contribution.count
    counted_days = [day for day, count in counts.items() if count > 0]
    first, last = min(counted_days, default=0), max(counted_days, default=0)
    if input_ is Input.ACTIVITY:
        return Series(first=first, last=last)
    amounts = Counter[int]()
    for contribution in added:
        amounts[contribution.day] += contribution.amount
    marks = sorted(contribution.mark for contribution in added)
    below = marks[-SEEN_MAX - 1] if len(marks) > SEEN_MAX else None
    series = Series(
        counts.total(),
        amounts.total(),
        first,
        last,
        {day: (counts[day], amounts[day]) for day in sorted(counts)},
        tuple(marks[-SEEN_MAX:]),
        _add_foreign({}, added),
        below,
        below is None,
    )
    return drop_old_dates(series, input_, as_of)


def unnoted_marks(events: Iterable[LeadEvent], state: State) -> list[Mark]:
    """Return the marks that need a note: their events are in a state that was built, but they are not.

    events: those that the state was built of.
    """
    unnoted = {input_: series for input_, series in state.items() if not series.is_noted}
    marks: dict[Mark, None] = {}
    for event in events if unnoted else ():
        with suppress(MalformedLeadEvent):
            added = contributions(event).items()
            marks |= {contribution.mark: None for input_, contribution in added if input_ in unnoted}
    seen = {mark for series in unnoted.values() for mark in series.seen}
    return [mark for mark in marks if mark not in seen]


def encode_series(series: Series) -> str:
    """Return a series as the text that is stored beside the features.

    Its parts, between semicolons:

    - the totals: count, amount, first, last
    - the dates, each as its distance from the one before
    - their counts, left out if all are 1
    - their amounts
    - the marks, the time of each as its distance from the one before
    - `below`, with an exclamation mark before it unless is_noted
    - the foreign totals, if there are any

    Whoever changes the text adds one to rules.leads.feature_items.STATE_VERSION.
    """
    days, counts = [*series.days], [count for count, _ in series.days.values()]
    marks = [
        _encode_mark((moment - before, event_id))
        for (moment, event_id), (before, _) in zip(series.seen, ((0, ""), *series.seen), strict=False)
    ]
    below = "" if series.below is None else f"{'' if series.is_noted else '!'}{_encode_mark(series.below)}"
    parts = [
        _encode_numbers([series.count, series.amount, series.first, series.last]),
        _encode_numbers(day - before for day, before in zip(days, (0, *days), strict=False)),
        "" if {*counts} <= {1} else _encode_numbers(counts),
        _encode_numbers(amount for _, amount in series.days.values()),
        ",".join(marks),
        below,
    ]
    if series.foreign:
        parts.append(",".join(f"{name}:{count}:{sum_}" for name, (count, sum_) in series.foreign.items()))
    return ";".join(parts)


def decode_series(text: str) -> Series:
    """Read what encode_series wrote."""
    totals, distances, counts, amounts, marks, below, *foreign_part = text.split(";")
    days = [*accumulate(_decode_numbers(distances))]
    sums = zip(_decode_numbers(counts) or [1] * len(days), _decode_numbers(amounts), strict=True)
    mark_steps = [*map(_decode_mark, marks.split(","))] if marks else []
    moments = accumulate(step for step, _ in mark_steps)
    foreign = (total.split(":") for total in foreign_part[0].split(",")) if foreign_part else ()
    count, amount, first, last = _decode_numbers(totals)
    return Series(
        count,
        amount,
        first,
        last,
        dict(zip(days, sums, strict=True)),
        tuple(zip(moments, (event_id for _, event_id in mark_steps), strict=True)),
        {name: (int(counted), int(sum_)) for name, counted, sum_ in foreign},
        _decode_mark(below.removeprefix("!")) if below else None,
        not below.startswith("!"),
    )


def sums_of(text: str) -> list[str]:
    """Return the parts of a series' text that follow from the events alone: all but `seen` and `below`."""
    parts = text.split(";")
    return [*parts[:4], *parts[6:]]


def encode_contacts(contacts: Iterable[Contact], as_of: datetime) -> str:
    """Return as text when the unanswered campaigns of the window were sent."""
    floor = as_of.toordinal() - CAMPAIGN_DAYS_MAX
    unanswered = (contact.sent or 0 for contact in contacts if not contact.reacted)
    return _encode_numbers(sorted(sent for sent in unanswered if sent > floor))


def decode_contacts(text: str) -> list[Contact]:
    """Read what encode_contacts() wrote."""
    return [Contact(sent, reacted=False) for sent in _decode_numbers(text)]


def _encode_mark(mark: Mark) -> str:
    moment, event_id = mark
    return f"{moment:x}.{event_id}"


def _decode_mark(text: str) -> Mark:
    moment, _, event_id = text.partition(".")
    return int(moment, 16), event_id


def _encode_numbers(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _decode_numbers(text: str) -> list[int]:
    return [*map(int, text.split(","))] if text else []
