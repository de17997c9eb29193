"""What a lead's events come to, small enough to sit beside its features, and exact whatever their order.

Of purchases and sentiment: totals, first and last date that counts, sums by date for the dates that a
window may still need, and the marks of a few events, by which one that comes again is recognised. Of events
whose marks have left there are notes (adapters/leads/feature_store.py); only an event as old as these is
looked up there. Of activity the first and last date are enough: repeating an event changes neither. Marks
aside, the state is a function of the set of events and of the date that it was last brought to.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import lru_cache
from itertools import accumulate, repeat
from operator import sub
from types import MappingProxyType
from typing import TypeVar

from rules.days import EPOCH, MICROSECOND, unstamp
from rules.leads.features import CAMPAIGN_DAYS_MAX, FEATURES, TRIGGERS, Contact, Feature, Input
from rules.leads.lead_events import ACTIVITY_TYPES, CAMPAIGN_TYPES, ORDER_SIGNS, LeadEvent, MalformedLeadEvent

SEEN_MAX = 16
# This many marks leave at once: one bulk write for eight events.
MARKS_DROPPED = 8
# What doors let in: so, sums of thousands of the largest fit into the 64 bits that the lake has for them.
AMOUNT_MINOR_MAX = 10**15
SENTIMENT_MILLI_MAX = 1000
ID_CHARACTERS = 12
CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)
Mark = tuple[int, str]  # microseconds since the epoch, the beginning of the event's id
Sums = tuple[int, int]  # count, amount
K = TypeVar("K")
SERIES = (Input.PURCHASES, Input.SENTIMENT, Input.ACTIVITY)
SCANNER = json.JSONDecoder()
SMALL = {str(number): number for number in range(100)}


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
    """One input's state."""

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
    is_noted: bool = True  # whether all of these have notes

    def has_left(self, mark: Mark) -> bool:
        """Whether the event may be in, but not in `seen`: only its note shows it."""
        return self.below is not None and mark <= self.below and mark not in self.seen

    @property
    def priced(self) -> int:
        """How many of those that count have an amount in the organization's own currency."""
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


def add_contribution(
    series: Series, input_: Input, given: Contribution, as_of: datetime, *, has_note: bool = False
) -> Series | None:
    """Return the series with one event more, brought to a date that is never before an earlier one.

    has_note: whether the event is noted as counted; asked only where has_left() says so.
    The same series: the event is in it already. None: the series has to be built again. Either nobody can
    tell whether the event is in, because what has left was not noted. Or it takes back the first or last
    order, and the next one is older than all dates that are kept.
    """
    if input_ is Input.ACTIVITY:
        first = min(series.first or given.day, given.day)
        last = max(series.last, given.day)
        return series if (first, last) == (series.first, series.last) else Series(first=first, last=last)
    if given.mark in series.seen:
        return series
    if series.has_left(given.mark):
        if has_note:
            return series
        if not series.is_noted:
            return None
    rolled = drop_old_dates(series, input_, as_of)
    is_kept = given.day > as_of.toordinal() - KEPT_DAYS[input_] or given.day in rolled.days
    span = _span(rolled, given) if is_kept else _span_before(rolled, given)
    return None if span is None else _with_contribution(rolled, given, span, is_kept=is_kept)


def _span(series: Series, given: Contribution) -> tuple[int, int] | None:
    """Return the first and the last date that count, after an event of a date whose sums are kept."""
    first, last, day = series.first, series.last, given.day
    if not given.count:
        return first, last
    if series.days.get(day, (0, 0))[0] + given.count > 0:
        return min(first or day, day), max(last, day)
    if day not in (first, last):
        return first, last
    if first == last:
        return 0, 0
    others = [each for each, (count, _) in series.days.items() if count > 0 and each != day]
    if not others:
        return None
    return (min(others) if day == first else first), (max(others) if day == last else last)


def _span_before(series: Series, given: Contribution) -> tuple[int, int] | None:
    """Return the same after an event of a date that is no longer kept."""
    first, last, day = series.first, series.last, given.day
    if given.count > 0:
        return min(first or day, day), max(last, day)
    return (first, last) if not given.count or first < day < last else None


def _with_contribution(
    series: Series, given: Contribution, span: tuple[int, int], *, is_kept: bool
) -> Series:
    days = series.days
    if is_kept:
        count, amount = days.get(given.day, (0, 0))
        is_late = bool(days) and given.day < next(reversed(days))
        days = {**days, given.day: (count + given.count, amount + given.amount)}
        if is_late:
            days = dict(sorted(days.items()))
    # Only marks that were stored before may leave: a note says for good that the state has the event.
    leaving = series.seen[:MARKS_DROPPED] if len(series.seen) >= SEEN_MAX else ()
    seen = (*series.seen[len(leaving) :], given.mark)
    if len(seen) > 1 and seen[-1] < seen[-2]:
        seen = tuple(sorted(seen))
    below = max((each for each in (series.below, *leaving[-1:]) if each), default=None)
    totals = series.count + given.count, series.amount + given.amount
    foreign = _foreign([given], series.foreign)
    return Series(*totals, *span, days, seen, foreign, below, series.is_noted)


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


def drop_old_dates(series: Series, input_: Input, as_of: datetime) -> Series:
    """Drop the dates that no window reaches any more: they stay in the totals.

    A date that counts below 0 waits for an order that was cancelled before it came.
    """
    floor = as_of.toordinal() - KEPT_DAYS[input_]
    if not series.days or next(iter(series.days)) > floor:
        return series
    return replace(series, days=_kept_dates(series.days, floor))


def _kept_dates(days: Mapping[int, tuple[int, int]], floor: int) -> dict[int, tuple[int, int]]:
    return {day: sums for day, sums in days.items() if day > floor or sums[0] < 0}


def unite_series(one: Series, other: Series, input_: Input, as_of: datetime) -> tuple[Series, list[Mark]]:
    """Return the series of two leads that are one from now on, and the marks that it has no room for.

    No event is in both. The marks are to be noted once the series is stored.
    """
    first, last = (drop_old_dates(each, input_, as_of) for each in (one, other))
    days = dict(sorted(_sum_by_key(first.days, last.days).items()))
    foreign = dict(sorted(_sum_by_key(first.foreign, last.foreign).items()))
    marks = sorted({*first.seen, *last.seen})
    gone, seen = marks[:-SEEN_MAX], marks[-SEEN_MAX:]
    lefts = [each for each in (first.below, last.below, *gone[-1:]) if each]
    found = Series(
        first.count + last.count,
        first.amount + last.amount,
        min((each.first for each in (first, last) if each.first), default=0),
        max(first.last, last.last),
        days,
        tuple(seen),
        {name: totals for name, totals in foreign.items() if totals != (0, 0)},
        max(lefts, default=None),
        first.is_noted and last.is_noted and not gone,
    )
    return found, gone


def _sum_by_key(one: Mapping[K, Sums], other: Mapping[K, Sums]) -> dict[K, Sums]:
    found = dict(one)
    for each, (count, amount) in other.items():
        before = found.get(each, (0, 0))
        found[each] = (before[0] + count, before[1] + amount)
    return found


def unnoted_marks(events: Iterable[LeadEvent], state: State) -> list[Mark]:
    """Return the marks of events that are in a state that was built of them, and that nothing else shows."""
    asked = [(each, series) for each, series in state.items() if not series.is_noted]
    found = []
    for event in events if asked else ():
        with suppress(MalformedLeadEvent):
            given = contributions(event)
            found += [given[each].mark for each, series in asked if each in given]
    kept = {mark for _, series in asked for mark in series.seen}
    return [each for each in dict.fromkeys(found) if each not in kept]


def build_state(events: Iterable[LeadEvent], as_of: datetime) -> State:
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
    return {input_: _build_series(input_, list(given.values()), as_of) for input_, given in found.items()}


def _build_series(input_: Input, given: list[Contribution], as_of: datetime) -> Series:
    counts = Counter[int]()
    for each in given:
        counts[each.day] += each.count
    counting = [day for day, count in counts.items() if count > 0]
    first, last = min(counting, default=0), max(counting, default=0)
    if input_ is Input.ACTIVITY:
        return Series(first=first, last=last)
    days: dict[int, tuple[int, int]] = {}
    for each in sorted(given, key=lambda one: one.day):
        count, amount = days.get(each.day, (0, 0))
        days[each.day] = (count + each.count, amount + each.amount)
    marks = sorted(each.mark for each in given)
    below = marks[-SEEN_MAX - 1] if len(marks) > SEEN_MAX else None
    count, amount = sum(each.count for each in given), sum(each.amount for each in given)
    kept = _kept_dates(days, as_of.toordinal() - KEPT_DAYS[input_])
    seen = tuple(marks[-SEEN_MAX:])
    return Series(count, amount, first, last, kept, seen, _foreign(given), below, below is None)


# A series, or the unanswered campaigns, as short text, as it is stored beside features.
#
# Whoever changes what the text says adds one to rules.leads.feature_items.STATE_VERSION.


Dates = tuple[str, str, str]  # distances, counts, amounts


def encode_series(series: Series) -> str:
    """Write a series as text: totals; dates, as distances; their counts; their amounts; marks; below; others.

    The first four parts are lists of whole numbers, because these are read and written fastest. Where all
    counts are 1, they are left out. An exclamation mark stands before `below` unless all have notes.
    """
    return _series_text(series, _dates([*series.days], [*series.days.values()]))


def reencode_series(series: Series, before: Series, text: str) -> str:
    """Write a series as encode_series does, from the text of what it was before.

    Where dates have gone at the beginning, and the newest one has changed or new ones have come after it, all
    dates between are copied from the text. To write a year of dates takes half of an event's CPU.
    """
    found = _dates_after(series.days, before.days, text)
    return encode_series(series) if found is None else _series_text(series, found)


def _dates(days: list[int], sums: list[Sums], last: int = 0) -> Dates:
    """Return dates as distances, their counts and their amounts. last: the date before the first of them."""
    if not days:
        return "", "", ""
    counts, amounts = zip(*sums, strict=True)
    gaps = map(sub, days, (last, *days))
    return _text(list(gaps)), "" if set(counts) == {1} else _text(list(counts)), _text(list(amounts))


def _dates_after(after: Mapping[int, Sums], before: Mapping[int, Sums], text: str) -> Dates | None:
    """Return what _dates() does of `after`, from the text of `before`; None where they share no middle."""
    old, new = [*before], [*after]
    gone = old.index(new[0]) if new and new[0] in before else len(old)
    kept = len(old) - gone - 1  # the newest date of before may have changed
    sums = [*after.values()]
    is_middle = 0 < kept < len(new) and new[:kept] == old[gone:-1]
    if not is_middle or sums[:kept] != [*before.values()][gone:-1]:
        return None
    gaps, counts, amounts = text.split(";", 4)[1:4]
    more_gaps, more_counts, more_amounts = _dates(new[kept:], sums[kept:], new[kept - 1])
    if counts:
        is_plain = all(count == 1 for count, _ in sums)
        counts = "" if is_plain else f"{_middle(counts, gone)},{more_counts or _ones(len(new) - kept)}"
    elif more_counts:
        counts = f"{_ones(kept)},{more_counts}"
    _, comma, gaps = _middle(gaps, gone).partition(",")
    return f"{new[0]}{comma}{gaps},{more_gaps}", counts, f"{_middle(amounts, gone)},{more_amounts}"


def _middle(numbers: str, gone: int) -> str:
    """Leave out some numbers at the beginning, and the last one."""
    return numbers.split(",", gone)[gone].rpartition(",")[0]


def _ones(times: int) -> str:
    return ",".join(repeat("1", times))


def _series_text(series: Series, dates: Dates) -> str:
    totals = _text([series.count, series.amount, series.first, series.last])
    marks, before = [], 0
    for moment, event_id in series.seen:
        marks.append(_mark((moment - before, event_id)))
        before = moment
    below = "" if series.below is None else f"{'' if series.is_noted else '!'}{_mark(series.below)}"
    foreign = [",".join(f"{name}:{count}:{sum_}" for name, (count, sum_) in series.foreign.items())]
    return ";".join((totals, *dates, ",".join(marks), below, *(foreign if series.foreign else ())))


def decode_series(text: str) -> Series:
    """Read what encode_series wrote."""
    totals, gaps, counts, amounts, marks, below, *more = text.split(";")
    days = {}
    if gaps:
        oldest, _, rest = gaps.partition(",")
        sums = zip(_small_numbers(counts) if counts else repeat(1), _numbers(amounts))  # noqa: B905 (repeat has no end)
        days = dict(zip(accumulate((int(oldest), *_small_numbers(rest))), sums, strict=True))
    seen: list[Mark] = []
    moment = 0
    for each in marks.split(",") if marks else ():
        step, event_id = _read_mark(each)
        moment += step
        seen.append((moment, event_id))
    count, amount, first, last = _numbers(totals)
    foreign = (each.split(":") for each in more[0].split(",")) if more else ()
    totals_by = {name: (int(counted), int(sum_)) for name, counted, sum_ in foreign}
    left = _read_mark(below.removeprefix("!")) if below else None
    return Series(count, amount, first, last, days, tuple(seen), totals_by, left, not below.startswith("!"))


def _mark(mark: Mark) -> str:
    return f"{mark[0]:x}.{mark[1]}"


def _read_mark(text: str) -> Mark:
    moment, _, event_id = text.partition(".")
    return int(moment, 16), event_id


def sums_of(text: str) -> list[str]:
    """Return the parts of a series' text that follow from the events alone: all but `seen` and `below`."""
    parts = text.split(";")
    return [*parts[:4], *parts[6:]]


def encode_contacts(contacts: Iterable[Contact], as_of: datetime) -> str:
    """Write when the campaigns that nobody reacted to were sent, as far as they are in the window."""
    floor = as_of.toordinal() - CAMPAIGN_DAYS_MAX
    unanswered = (each.sent or 0 for each in contacts if not each.reacted)
    return _text(sorted(sent for sent in unanswered if sent > floor))


def decode_contacts(text: str) -> list[Contact]:
    """Read what encode_contacts() wrote."""
    return [Contact(sent, reacted=False) for sent in _numbers(text)]


def _text(numbers: list[int]) -> str:
    """Write numbers. This takes half the time of joining texts, and _numbers half the time of int()."""
    return repr(numbers)[1:-1].replace(" ", "")


def _numbers(text: str) -> list[int]:
    found: list[int] = SCANNER.raw_decode(f"[{text}]")[0]
    return found


def _small_numbers(text: str) -> list[int]:
    """Read numbers. Where all are small, this takes half the time of _numbers."""
    try:
        return [*map(SMALL.__getitem__, text.split(","))] if text else []
    except KeyError:
        return _numbers(text)
