"""The state of a lead's features as text, as it is stored beside the features.

Whoever changes the text adds one to rules.leads.feature_items.STATE_VERSION.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import accumulate

from rules.leads.features import CAMPAIGN_DAYS_MAX, Contact
from rules.leads.series import Mark, Series

WITHOUT_NOTES = "!"  # stands before the newest mark that has left, if some marks have left without notes


def encode_series(series: Series) -> str:
    """Return a series as text.

    Its parts, between semicolons:

    - the totals: count, amount, first, last
    - the dates, each as its distance from the one before
    - their counts, left out if all are 1
    - their amounts
    - the marks, the time of each as its distance from the one before
    - `newest_left`, with an exclamation mark before it unless has_all_notes
    - the foreign totals, if there are any
    """
    counts = [count for count, _ in series.days.values()]
    mark_distances = _distances(mark.microseconds for mark in series.marks)
    marks = [
        _encode_mark(distance, mark.id_start)
        for distance, mark in zip(mark_distances, series.marks, strict=True)
    ]
    newest_left = ""
    if series.newest_left is not None:
        newest_left = ("" if series.has_all_notes else WITHOUT_NOTES) + _encode_mark(*series.newest_left)
    parts = [
        _encode_numbers([series.count, series.amount, series.first, series.last]),
        _encode_numbers(_distances(series.days)),
        "" if {*counts} <= {1} else _encode_numbers(counts),
        _encode_numbers(amount for _, amount in series.days.values()),
        ",".join(marks),
        newest_left,
    ]
    if series.foreign:
        totals = (f"{currency}:{count}:{amount}" for currency, (count, amount) in series.foreign.items())
        parts.append(",".join(totals))
    return ";".join(parts)


def decode_series(text: str) -> Series:
    """Read what encode_series() wrote."""
    totals, distances, counts, amounts, marks, newest_left, *foreign_part = text.split(";")
    count, amount, first, last = _decode_numbers(totals)
    days = [*accumulate(_decode_numbers(distances))]
    sums = zip(_decode_numbers(counts) or [1] * len(days), _decode_numbers(amounts), strict=True)
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
        foreign={currency: (int(orders), int(sum_)) for currency, orders, sum_ in foreign},
        newest_left=_decode_mark(newest_left.removeprefix(WITHOUT_NOTES)) if newest_left else None,
        has_all_notes=not newest_left.startswith(WITHOUT_NOTES),
    )


def sums_of(text: str) -> list[str]:
    """Return the parts of a series' text that follow from the events alone: all but the two of marks."""
    totals, distances, counts, amounts, _marks, _newest_left, *foreign_part = text.split(";")
    return [totals, distances, counts, amounts, *foreign_part]


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
