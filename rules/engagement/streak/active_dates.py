"""Which dates are active ones, by the events of a ledger that nobody has reversed (rules 2 and 12)."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date

from rules.engagement.account_state import Day
from rules.engagement.ledger import Draft, Entry, EntryKind


def active_dates(entries: Iterable[Entry]) -> set[date]:
    """Return the dates that entries make active ones: those of events that none of them reverses."""
    drafts = [entry.draft for entry in entries if entry.draft.activity_date and not entry.draft.is_passive]
    gone = {each.event_id for each in drafts if each.kind is EntryKind.CLAWBACK}
    return {
        date.fromisoformat(each.activity_date or "")
        for each in drafts
        if each.kind is EntryKind.EARN and each.event_id not in gone
    }


def lost_dates(
    days: Mapping[date, Day | None], pending: Iterable[Entry], commands: Iterable[Draft]
) -> set[date]:
    """Return the dates that are active no more, because the last of their events is reversed.

    days: with what is pending counted in, and without the commands.
    """
    undone = Counter(
        date.fromisoformat(each.activity_date)
        for each in commands
        if each.kind is EntryKind.CLAWBACK and each.activity_date and not each.is_passive
    )
    touched = {
        date.fromisoformat(each.draft.activity_date)
        for each in pending
        if each.draft.kind is EntryKind.CLAWBACK and each.draft.activity_date
    }
    return {
        when
        for when in touched | undone.keys()
        if (day := days.get(when)) and day.events_count - day.passive_events <= undone[when]
    }
