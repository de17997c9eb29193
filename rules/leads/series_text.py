"""A series, or the unanswered campaigns, as short text, as it is stored beside features.

Whoever changes what the text says adds one to rules.leads.declarations.STATE_VERSION.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import accumulate, repeat
from operator import sub

from rules.leads.features import CAMPAIGN_DAYS_MAX, Contact
from rules.leads.series import Mark, Series, Sums

SCANNER = json.JSONDecoder()
SMALL = {str(number): number for number in range(100)}
Dates = tuple[str, str, str]  # distances, counts, amounts


def encode(series: Series) -> str:
    """Write a series as text: totals; dates, as distances; their counts; their amounts; marks; below; others.

    The first four parts are lists of whole numbers, because these are read and written fastest. Where all
    counts are 1, they are left out. An exclamation mark stands before `below` unless all have notes.
    """
    return _joined(series, _dates([*series.days], [*series.days.values()]))


def encode_after(series: Series, before: Series, text: str) -> str:
    """Write a series as encode() does, from the text of what it was before.

    Where dates have gone at the beginning, and the newest one has changed or new ones have come after it, all
    dates between are copied from the text. To write a year of dates takes half of an event's CPU.
    """
    found = _dates_after(series.days, before.days, text)
    return encode(series) if found is None else _joined(series, found)


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


def _joined(series: Series, dates: Dates) -> str:
    totals = _text([series.count, series.amount, series.first, series.last])
    marks, before = [], 0
    for moment, event_id in series.seen:
        marks.append(_mark((moment - before, event_id)))
        before = moment
    below = "" if series.below is None else f"{'' if series.is_noted else '!'}{_mark(series.below)}"
    foreign = [",".join(f"{name}:{count}:{sum_}" for name, (count, sum_) in series.foreign.items())]
    return ";".join((totals, *dates, ",".join(marks), below, *(foreign if series.foreign else ())))


def decode(text: str) -> Series:
    """Read what encode() wrote."""
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
