"""A series, or the unanswered campaigns, as short text, as it is stored beside features.

Whoever changes what the text says adds one to rules.leads.declarations.STATE_VERSION.
"""

import json
from collections.abc import Iterable
from datetime import datetime
from itertools import accumulate, repeat
from operator import sub

from rules.leads.features import CAMPAIGN_DAYS_MAX, Contact
from rules.leads.series import Mark, Series


def encode(series: Series) -> str:
    """Write a series as text: totals; dates, as distances; their counts; their amounts; marks; below; others.

    The first four parts are lists of whole numbers, because these are read and written fastest. Where all
    counts are 1, they are left out. An exclamation mark stands before `below` unless all have notes.
    """
    totals = _text([series.count, series.amount, series.first, series.last])
    gaps = counts = amounts = ""
    if series.days:
        counted, summed = zip(*series.days.values(), strict=True)
        gaps, amounts = _text(list(map(sub, series.days, (0, *series.days)))), _text(list(summed))
        counts = "" if set(counted) == {1} else _text(list(counted))
    marks, before = [], 0
    for moment, event_id in series.seen:
        marks.append(_mark((moment - before, event_id)))
        before = moment
    below = "" if series.below is None else f"{'' if series.is_noted else '!'}{_mark(series.below)}"
    foreign = [",".join(f"{name}:{count}:{sum_}" for name, (count, sum_) in series.foreign.items())]
    return ";".join(
        (totals, gaps, counts, amounts, ",".join(marks), below, *(foreign if series.foreign else ()))
    )


def decode(text: str) -> Series:
    """Read what encode() wrote."""
    totals, gaps, counts, amounts, marks, below, *more = text.split(";")
    days = {}
    if gaps:
        sums = zip(_numbers(counts) if counts else repeat(1), _numbers(amounts))  # noqa: B905 (repeat has no end)
        days = dict(zip(accumulate(_numbers(gaps)), sums, strict=True))
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
    """Write numbers. This takes half the time of joining texts, and _numbers half the time of splitting."""
    return repr(numbers)[1:-1].replace(" ", "")


def _numbers(text: str) -> list[int]:
    found: list[int] = json.loads(f"[{text}]")
    return found
