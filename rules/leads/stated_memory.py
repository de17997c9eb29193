"""Turns what an operator or another service states of a lead into evidence."""

from datetime import datetime

from rules.days import stamp
from rules.leads.evidence import Evidence, MemoryEntry, memory_entry
from rules.leads.memory import SENTIMENT_MILLI_MAX, VALUE_CHARACTERS_MAX, short_key
from rules.leads.memory_types import CAMPAIGN_CONTACT, SENTIMENT, TYPES

STATED_WEIGHT_MILLI = 900


def stated_entry(memory_type: str, key: str, value: str, home: str, source: str, at: datetime) -> MemoryEntry:  # noqa: PLR0913, PLR0917 (what is stated, of whom, by whom, when)
    """Return a statement as a memory with one piece of evidence, by hand.

    home: the leaf that the statement is about. source: who states it.
    Raises ValueError, with the reason, for an unknown type, for a sentiment that is no number of thousandths,
    and for campaign contacts: a feature is computed from those, so only events may give them.
    """
    kind = TYPES.get(memory_type)
    if kind is None or kind is CAMPAIGN_CONTACT:
        raise ValueError(f"memory_type {memory_type} cannot be stated")
    if kind is SENTIMENT and not (value.lstrip("-").isdigit() and abs(int(value)) <= SENTIMENT_MILLI_MAX):
        raise ValueError("value of a sentiment is no whole number of thousandths from -1000 to 1000")
    piece = Evidence(
        stamp(at),
        f"{home}@{stamp(at)}",
        value[:VALUE_CHARACTERS_MAX],
        STATED_WEIGHT_MILLI,
        source,
        home,
        by_hand=True,
    )
    return memory_entry(kind, short_key(key), (piece,))
