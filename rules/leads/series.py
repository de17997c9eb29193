"""The state from which a lead's features are computed: one series for each input, small enough to be stored.

A series of purchases or of sentiment has totals, the first and the last date that counts, and sums by
date for the dates that a window may still need. Activity needs its first and last date alone, which a
repeated event does not change.

An event may come twice. So a series has the *marks* of its newest events, and does not count an event again
whose mark it has. An event that is older than all of them may be in the series or not: then the series is
built again from all stored events.

In this order: a series, and what an event adds to it; a series with one event more, of two leads together, or
built from all events; the text that is stored.

A state follows from the set of events, whatever their order, and from its newest date. It is stored as text
beside the features. Whoever changes the text adds one to rules.leads.feature_items.STATE_VERSION.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import accumulate, starmap
from typing import NamedTuple, TypeVar

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

MARKS_MAX = 16  # of one series
MARK_ID_CHARACTERS = 12  # so many characters of an event's id are in its mark
# The largest amount that doors accept: sums of thousands of them fit into the lake's 64 bits.
AMOUNT_MINOR_MAX = 10**15
CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)
SERIES_INPUTS = (Input.PURCHASES, Input.SENTIMENT, Input.ACTIVITY)
K = TypeVar("K")


class Mark(NamedTuple):
    """What identifies an event in a series. Marks are ordered by time."""

    microseconds: int  # since the epoch
    id_start: str  # the beginning of the event's id, without hyphens


class Sums(NamedTuple):
    """What some events add up to."""

    number: int  # of events that count; below 0 if more orders were cancelled than placed
    amount: int


NO_SUMS = Sums(0, 0)


def kept_days(features: Iterable[Feature]) -> dict[Input, int]:
    """Return, by input, how many dates back the longest window of its features reaches."""
    days = dict.fromkeys(SERIES_INPUTS, 0)
    for feature in features:
        if feature.input in days:
            days[feature.input] = max(days[feature.input], feature.window_days or 0)
    return days


KEPT_DAYS = kept_days(FEATURES)


@dataclass(frozen=True, slots=True)
class Series:
    """The state of one input. Dates are ordinals."""

    count: int = 0  # of all time
    amount: int = 0  # of all time: minor units of the organization's own currency, or thousandths
    first: int = 0  # the first date with a count above 0; 0: none
    last: int = 0  # the last one
    days: dict[int, Sums] = field(default_factory=dict)  # by date, ascending; the kept dates only
    marks: tuple[Mark, ...] = ()  # of the newest events, ascending
    # Sums of all time in other currencies, by currency in order. They are part of count, and not of amount
    foreign: dict[str, Sums] = field(default_factory=dict)
    newest_dropped: Mark | None = None  # the newest mark that is not among `marks` any more; None: all are

    @property
    def priced(self) -> int:
        """The number of counted orders whose amount is in the organization's own currency."""
        return self.count - sum(sums.number for sums in self.foreign.values())


EMPTY_SERIES = Series()
State = Mapping[Input, Series]
EMPTY_STATE: State = dict.fromkeys(SERIES_INPUTS, EMPTY_SERIES)


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one event adds to one input on its date (UTC, an ordinal)."""

    mark: Mark
    day: int
    count: int
    amount: int
    # By currency, if the amount is not in the organization's own; then `amount` is 0
    foreign: Mapping[str, Sums] = field(default_factory=dict)


def contributions(event: LeadEvent) -> dict[Input, Contribution]:
    """Return what an event adds, by input; raises MalformedLeadEvent, with the field and the reason."""
    mark = mark_of(event.occurred_at, event.id)
    day = date.fromisoformat(event.occurred_at[:10]).toordinal()
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


def mark_of(occurred_at: str, event_id: str) -> Mark:
    """Return an event's mark. occurred_at: a stamp."""
    microseconds = (unstamp(occurred_at) - EPOCH) // MICROSECOND
    return Mark(microseconds, event_id.replace("-", "")[:MARK_ID_CHARACTERS])


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
    return Contribution(mark, day, count, 0, {currency: Sums(count, sign * amount)})


def add_contribution(
    series: Series, input_: Input, contribution: Contribution, as_of: datetime
) -> Series | None:
    """Return the series with one event more, as of an instant that is never before an earlier one.

    It is the same series if the event is in it already. None: it has to be built again, because

    - the event is older than all marks, so that it may be in the series or not, or
    - the event takes back the only order of the first or last date.
    """
    day, mark = contribution.day, contribution.mark
    if input_ is Input.ACTIVITY:
        first, last = min(series.first or day, day), max(series.last, day)
        return series if (first, last) == (series.first, series.last) else Series(first=first, last=last)
    if mark in series.marks:
        return series
    if series.newest_dropped is not None and mark <= series.newest_dropped:
        return None
    rolled = drop_old_dates(series, input_, as_of)
    is_kept = day > as_of.toordinal() - KEPT_DAYS[input_] or day in rolled.days
    span = _span(rolled, contribution, is_kept=is_kept)
    if span is None:
        return None
    first, last = span
    added = {day: Sums(contribution.count, contribution.amount)} if is_kept else {}
    marks, newest_dropped = _newest_marks((*rolled.marks, mark), rolled.newest_dropped)
    return Series(
        count=rolled.count + contribution.count,
        amount=rolled.amount + contribution.amount,
        first=first,
        last=last,
        days=_sum_by_key(rolled.days, added),
        marks=marks,
        foreign=_sum_foreign(rolled.foreign, contribution.foreign),
        newest_dropped=newest_dropped,
    )


def _span(series: Series, contribution: Contribution, *, is_kept: bool) -> tuple[int, int] | None:
    """Return the first and the last date with a count above 0, after an event.

    is_kept: whether the sums of its date are kept. None: only all events together say which dates these are.
    """
    first, last, day = series.first, series.last, contribution.day
    count_after = series.days.get(day, NO_SUMS).number + contribution.count
    if contribution.count == 0:  # a refund or a further charge
        return first, last
    if contribution.count > 0:
        # An order counts on its date, unless its cancellation has come before it.
        return (min(first or day, day), max(last, day)) if count_after > 0 else (first, last)
    # A cancellation may take back the only order of the first or last date. It does not if the date has other
    # orders, or lies between these two dates. A kept date that is neither of them has no order at all.
    may_be_end = day in (first, last) if is_kept else not first < day < last
    return None if may_be_end and count_after <= 0 else (first, last)


def drop_old_dates(series: Series, input_: Input, as_of: datetime) -> Series:
    """Drop the dates that no window reaches any more: they stay in the totals.

    A date whose count is below 0 is kept: an order was cancelled there before its own event came.
    """
    floor = as_of.toordinal() - KEPT_DAYS[input_]
    days = {day: sums for day, sums in series.days.items() if day > floor or sums.number < 0}
    return replace(series, days=days)


def unite_series(one: Series, other: Series, input_: Input, as_of: datetime) -> Series | None:
    """Return the series of two leads that are one from now on. No event is in both.

    None: it has to be built, because one of them has the cancellation of an order that the other may have.
    """
    if any(sums.number < 0 for sums in (*one.days.values(), *other.days.values())):
        return None
    marks, newest_dropped = _newest_marks(
        (*one.marks, *other.marks), one.newest_dropped, other.newest_dropped
    )
    return Series(
        count=one.count + other.count,
        amount=one.amount + other.amount,
        first=min(filter(None, (one.first, other.first)), default=0),
        last=max(one.last, other.last),
        days=_sum_by_key(drop_old_dates(one, input_, as_of).days, drop_old_dates(other, input_, as_of).days),
        marks=marks,
        foreign=_sum_foreign(one.foreign, other.foreign),
        newest_dropped=newest_dropped,
    )


def build_state(events: Iterable[LeadEvent], as_of: datetime) -> State:
    """Return the state of all of a lead's events, each of which may be there twice.

    A malformed event adds nothing: it was kept with its reason when it was first processed.
    """
    by_mark: dict[Input, dict[Mark, Contribution]] = {input_: {} for input_ in SERIES_INPUTS}
    for event in events:
        with suppress(MalformedLeadEvent):
            for input_, contribution in contributions(event).items():
                by_mark[input_][contribution.mark] = contribution
    return {input_: _build_series(input_, added, as_of) for input_, added in by_mark.items()}


def _build_series(input_: Input, added: Mapping[Mark, Contribution], as_of: datetime) -> Series:
    """Return the series of the contributions to one input, as of an instant that none is later than."""
    days = _sum_by_key(*({each.day: Sums(each.count, each.amount)} for each in added.values()))
    counted_days = [day for day, sums in days.items() if sums.number > 0]
    first, last = min(counted_days, default=0), max(counted_days, default=0)
    if input_ is Input.ACTIVITY:
        return Series(first=first, last=last)
    marks, newest_dropped = _newest_marks(added)
    series = Series(
        count=sum(sums.number for sums in days.values()),
        amount=sum(sums.amount for sums in days.values()),
        first=first,
        last=last,
        days=days,
        marks=marks,
        foreign=_sum_foreign(*(each.foreign for each in added.values())),
        newest_dropped=newest_dropped,
    )
    return drop_old_dates(series, input_, as_of)


def _sum_by_key(*parts: Mapping[K, Sums]) -> dict[K, Sums]:
    """Add up sums by date or by currency. The keys of the result ascend."""
    totals: dict[K, Sums] = {}
    for part in parts:
        for key, sums in part.items():
            before = totals.get(key, NO_SUMS)
            totals[key] = Sums(before.number + sums.number, before.amount + sums.amount)
    return dict(sorted(totals.items()))


def _sum_foreign(*parts: Mapping[str, Sums]) -> dict[str, Sums]:
    """Add up sums by currency, without those that have become 0."""
    return {currency: sums for currency, sums in _sum_by_key(*parts).items() if sums != NO_SUMS}


def _newest_marks(
    marks: Iterable[Mark], *dropped_before: Mark | None
) -> tuple[tuple[Mark, ...], Mark | None]:
    """Return the marks that a series keeps, ascending, and the newest one that it drops or has dropped."""
    in_order = sorted(marks)
    dropped = [*in_order[:-MARKS_MAX], *filter(None, dropped_before)]
    return tuple(in_order[-MARKS_MAX:]), max(dropped, default=None)


def encode_series(series: Series) -> str:
    """Return a series as text.

    Its parts, between semicolons: the totals (count, amount, first, last); the dates, each as its distance
    from the one before; their counts, left out if all are 1; their amounts; the marks, each time as its
    distance from the one before; `newest_dropped`; the foreign totals, if there are any.
    """
    counts = [sums.number for sums in series.days.values()]
    mark_distances = _distances(mark.microseconds for mark in series.marks)
    marks = [
        _encode_mark(distance, mark.id_start)
        for distance, mark in zip(mark_distances, series.marks, strict=True)
    ]
    parts = [
        _encode_numbers([series.count, series.amount, series.first, series.last]),
        _encode_numbers(_distances(series.days)),
        "" if {*counts} <= {1} else _encode_numbers(counts),
        _encode_numbers(sums.amount for sums in series.days.values()),
        ",".join(marks),
        _encode_mark(*series.newest_dropped) if series.newest_dropped else "",
    ]
    if series.foreign:
        totals = (f"{currency}:{sums.number}:{sums.amount}" for currency, sums in series.foreign.items())
        parts.append(",".join(totals))
    return ";".join(parts)


def decode_series(text: str) -> Series:
    """Read what encode_series() wrote."""
    totals, distances, counts, amounts, marks, newest_dropped, *foreign_part = text.split(";")
    count, amount, first, last = _decode_numbers(totals)
    days = [*accumulate(_decode_numbers(distances))]
    # Strict: an amount or a count too many is damage, and raises ValueError.
    sums = starmap(
        Sums, zip(_decode_numbers(counts) or [1] * len(days), _decode_numbers(amounts), strict=True)
    )
    mark_steps = [*map(_decode_mark, marks.split(","))] if marks else []
    microseconds = accumulate(step.microseconds for step in mark_steps)
    foreign = (total.split(":") for total in foreign_part[0].split(",")) if foreign_part else ()
    return Series(
        count=count,
        amount=amount,
        first=first,
        last=last,
        days=dict(zip(days, sums, strict=True)),
        marks=tuple(map(Mark, microseconds, (step.id_start for step in mark_steps))),
        foreign={currency: Sums(int(orders), int(minor)) for currency, orders, minor in foreign},
        newest_dropped=_decode_mark(newest_dropped) if newest_dropped else None,
    )


def encode_contacts(contacts: Iterable[Contact], as_of: datetime) -> str:
    """Return as text on which dates the unanswered campaigns of the window were sent."""
    floor = as_of.toordinal() - CAMPAIGN_DAYS_MAX
    unanswered = (contact.sent or 0 for contact in contacts if not contact.reacted)
    return _encode_numbers(sorted(sent for sent in unanswered if sent > floor))


def decode_contacts(text: str) -> list[Contact]:
    """Read what encode_contacts() wrote."""
    return [Contact(sent, reacted=False) for sent in _decode_numbers(text)]


def _distances(numbers: Iterable[int]) -> Iterator[int]:
    """Yield the first number, and then the distance of each from the one before."""
    before = 0
    for number in numbers:
        yield number - before
        before = number


def _encode_mark(microseconds: int, id_start: str) -> str:
    return f"{microseconds:x}.{id_start}"


def _decode_mark(text: str) -> Mark:
    microseconds, _, id_start = text.partition(".")
    return Mark(int(microseconds, 16), id_start)


def _encode_numbers(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _decode_numbers(text: str) -> list[int]:
    return [*map(int, text.split(","))] if text else []
