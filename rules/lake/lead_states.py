"""A lead's state as the lake has it: text that SQL can fold at any instant, with dates as people write them.

Of a series: `count:amount:priced:first:last`, then `date:count:amount` for each date that a window may need.
Of campaigns: how many wait, then when each of these was sent. Example: `1 2026-01-10`.
"""

from collections.abc import Mapping
from datetime import date
from typing import Any

from rules.leads.declarations import DECLARED, DIGEST
from rules.leads.features import Contact, Input
from rules.leads.series import SERIES, Series
from rules.leads.series_text import decode, decode_contacts


def states_of(inputs: Any) -> dict[Input, str]:
    """Return an item's `inputs` as text for the lake; {} for a state of other declarations than today's."""
    if not isinstance(inputs, Mapping) or inputs.get(DECLARED) != DIGEST:
        return {}
    found = {each: series_words(decode(inputs[each])) for each in SERIES if each in inputs}
    if Input.CAMPAIGNS in inputs:
        found[Input.CAMPAIGNS] = contact_words(decode_contacts(inputs[Input.CAMPAIGNS]))
    return found


def series_words(series: Series) -> str:
    """Return a series as text."""
    totals = (series.count, series.amount, series.priced, _day(series.first), _day(series.last))
    entries = (f"{_day(day)}:{count}:{amount}" for day, (count, amount) in series.days.items())
    return " ".join((":".join(map(str, totals)), *entries))


def contact_words(contacts: list[Contact]) -> str:
    """Return the campaigns that wait as text."""
    return " ".join((str(len(contacts)), *(_day(each.sent or 0) for each in contacts)))


def _day(day: int) -> str:
    return date.fromordinal(day).isoformat() if day else ""
