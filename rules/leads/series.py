"""What a lead's events come to, small enough to sit beside its features, and exact whatever their order.

Of purchases and sentiment: totals, first and last date that counts, sums by date for the dates that a
window may still need, and the newest few events, by which one that comes again is recognised. Of activity
the first and last date are enough: repeating an event changes neither. The state is a function of the set
of events and of the date that it was last brought to.
"""

# Long: what an event adds, and how the sum of all is kept, are one rule.

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import lru_cache
from types import MappingProxyType

from rules.days import EPOCH, MICROSECOND, unstamp
from rules.leads.features import FEATURES, TRIGGERS, Feature, Input
from rules.leads.lead_events import (
    ACTIVITY_TYPES,
    CAMPAIGN_TYPES,
    ORDER_SIGNS,
    LeadEvent,
    MalformedLeadEvent,
)

SEEN_MAX = 16
# What doors let in: so, sums of thousands of the largest fit into the 64 bits that the lake has for them.
AMOUNT_MINOR_MAX = 10**15
SENTIMENT_MILLI_MAX = 1000
ID_CHARACTERS = 12
CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)
Mark = tuple[int, str]  # microseconds since the epoch, the beginning of the event's id
SERIES = (Input.PURCHASES, Input.SENTIMENT, Input.ACTIVITY)


def kept_days(features: Iterable[Feature]) -> dict[Input, int]:
    """Return, by input, how many dates back the longest window of its features reaches."""
    declared = list(features)
    return {
        each: max((feature.window_days or 0 for feature in declared if feature.input is each), default=0)
        for each in SERIES
    }


KEPT_DAYS = kept_days(FEATURES)


@dataclass(frozen=True, slots=True)
class Series:
    """One input's state. days: (count, amount) by date, as ordinals, of the kept dates only; ascending.

    count, amount: of all time. first, last: dates with a count, as ordinals; 0: none. seen: ascending.
    foreign: (count, amount) of all time by currency, by name; these are part of count, and not of amount.
    """

    count: int = 0
    amount: int = 0
    first: int = 0
    last: int = 0
    days: dict[int, tuple[int, int]] = field(default_factory=dict)
    seen: tuple[Mark, ...] = ()
    foreign: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def priced(self) -> int:
        """How many of those that count have an amount in the organization's own currency."""
        return self.count - sum(count for count, _ in self.foreign.values())


EMPTY = Series()
State = Mapping[Input, Series]
NOTHING: State = dict.fromkeys(SERIES, EMPTY)


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one event adds to one input on its date (UTC, an ordinal).

    foreign: currency and amount, if that is not the organization's own; then `amount` is 0.
    """

    mark: Mark
    day: int
    count: int
    amount: int
    foreign: tuple[str, int] | None = None


def contributions(event: LeadEvent) -> dict[Input, Contribution]:
    """Return what an event adds, by input; raises MalformedLeadEvent, with the field and the reason."""
    mark, day = mark_of(event.occurred_at, event.id), _ordinal(event.occurred_at[:10])
    given: dict[Input, Contribution] = {}
    if event.event_type in TRIGGERS[Input.PURCHASES]:
        given[Input.PURCHASES] = _purchase(event, mark, day)
    if event.event_type in TRIGGERS[Input.SENTIMENT]:
        milli = event.payload.get("sentiment_milli")
        if milli is not None:
            if type(milli) is not int or abs(milli) > SENTIMENT_MILLI_MAX:
                raise MalformedLeadEvent("sentiment_milli is no whole number from -1000 to 1000")
            given[Input.SENTIMENT] = Contribution(mark, day, 1, milli)
    if event.event_type in CAMPAIGN_TYPES:
        campaign = event.payload.get("campaign_id")
        if not isinstance(campaign, str) or not campaign:
            raise MalformedLeadEvent("campaign_id is no text")
    if event.event_type in ACTIVITY_TYPES:
        given[Input.ACTIVITY] = Contribution(mark, day, 1, 0)
    return given


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
    """Return what an event is recognised by."""
    return (unstamp(occurred_at) - EPOCH) // MICROSECOND, event_id.replace("-", "")[:ID_CHARACTERS]


@lru_cache(maxsize=4096)
def _ordinal(day: str) -> int:
    return date.fromisoformat(day).toordinal()


def add(series: Series, input_: Input, given: Contribution, as_of: datetime) -> Series | None:
    """Return the series with one event more, brought to a date that is never before an earlier one.

    The same series: the event is in it already. None: it is older than all that are remembered by name, so
    nobody can tell; or it takes a count back, which may move the first and the last date. Then the series has
    to be built again.
    """
    if input_ is Input.ACTIVITY:
        first = min(series.first or given.day, given.day)
        last = max(series.last, given.day)
        return series if (first, last) == (series.first, series.last) else Series(first=first, last=last)
    if given.mark in series.seen:
        return series
    if given.count < 0 or (len(series.seen) == SEEN_MAX and given.mark < series.seen[0]):
        return None
    return _added(roll(series, input_, as_of), input_, given, as_of)


def _added(series: Series, input_: Input, given: Contribution, as_of: datetime) -> Series:
    days = series.days
    if given.day > as_of.toordinal() - KEPT_DAYS[input_]:
        count, amount = days.get(given.day, (0, 0))
        is_late = bool(days) and given.day < next(reversed(days))
        days = {**days, given.day: (count + given.count, amount + given.amount)}
        if is_late:
            days = dict(sorted(days.items()))
    first, last = series.first, series.last
    if given.count:
        first, last = min(first or given.day, given.day), max(last, given.day)
    seen = (*series.seen, given.mark)
    if len(seen) > 1 and seen[-1] < seen[-2]:
        seen = tuple(sorted(seen))
    totals = series.count + given.count, series.amount + given.amount
    return Series(*totals, first, last, days, seen[-SEEN_MAX:], _foreign([given], series.foreign))


def _foreign(
    given: Iterable[Contribution], before: Mapping[str, tuple[int, int]] = MappingProxyType({})
) -> dict[str, tuple[int, int]]:
    """Return totals by foreign currency. One that comes to nothing is left out."""
    found = dict(before)
    for each in given:
        if each.foreign:
            currency, amount = each.foreign
            count, sum_ = found.get(currency, (0, 0))
            found[currency] = (count + each.count, sum_ + amount)
    return {currency: totals for currency, totals in sorted(found.items()) if totals != (0, 0)}


def roll(series: Series, input_: Input, as_of: datetime) -> Series:
    """Drop the dates that no window reaches any more: they stay in the totals."""
    floor = as_of.toordinal() - KEPT_DAYS[input_]
    if not series.days or next(iter(series.days)) > floor:
        return series
    return replace(series, days={day: sums for day, sums in series.days.items() if day > floor})


def build(events: Iterable[LeadEvent], as_of: datetime) -> State:
    """Return the state of all of a lead's events, each of which may be there twice.

    One that cannot be read adds nothing: it was kept with its reason when it was first processed.
    """
    found: dict[Input, dict[Mark, Contribution]] = {each: {} for each in SERIES}
    for event in events:
        try:
            given = contributions(event)
        except MalformedLeadEvent:
            continue
        for input_, each in given.items():
            found[input_][each.mark] = each
    return {input_: _built(input_, list(given.values()), as_of) for input_, given in found.items()}


def _built(input_: Input, given: list[Contribution], as_of: datetime) -> Series:
    counts = Counter[int]()
    for each in given:
        counts[each.day] += each.count
    counting = [day for day, count in counts.items() if count > 0]
    first, last = min(counting, default=0), max(counting, default=0)
    if input_ is Input.ACTIVITY:
        return Series(first=first, last=last)
    days: dict[int, tuple[int, int]] = {}
    floor = as_of.toordinal() - KEPT_DAYS[input_]
    for each in given:
        if each.day > floor:
            count, amount = days.get(each.day, (0, 0))
            days[each.day] = (count + each.count, amount + each.amount)
    seen = tuple(sorted(each.mark for each in given)[-SEEN_MAX:])
    count, amount = sum(each.count for each in given), sum(each.amount for each in given)
    return Series(count, amount, first, last, dict(sorted(days.items())), seen, _foreign(given))
