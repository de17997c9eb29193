"""What was read of a user, as items of the tables, and what must be there instead."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adapters.engagement.account_items import day_attributes, day_from
from adapters.platform.items import Item, item, plain
from analytics.reconcile.profile_settings import UNREADABLE
from rules.engagement.account_state import Day, Profile
from rules.engagement.archive import Archive
from rules.engagement.ledger import Entry
from rules.engagement.reconciliation import WRONG, Counted, days_of, entries_up_to, profile_of


@dataclass(frozen=True, slots=True)
class View:
    """What was read of a user. settings: what of the profile is not in the journal, as it must be.

    archive: what the profile has put away, if it has and that can be read.
    """

    user_id: str
    profile: Item | None
    days: Mapping[str, Item]
    entries: Sequence[Entry]
    settings: Profile
    has_profile: bool
    archive: Archive | None = None

    def expected_profile(self, place: str) -> Profile | None:
        """Return the profile as of a place in the journal; None where there must be none."""
        if not self.has_profile:
            return None
        return profile_of(self.settings, entries_up_to(self.entries, place))

    def counted_days(self) -> dict[str, Counted]:
        """Return up to where each stored day has counted, and whether it is right as of there."""
        by_date: dict[str, list[Entry]] = {}
        for entry in self.entries:
            by_date.setdefault(entry.draft.activity_date or "", []).append(entry)
        return {when: _counted(stored, when, by_date.get(when, ())) for when, stored in self.days.items()}


def _counted(stored: Item, when: str, own: Sequence[Entry]) -> Counted:
    """own: the entries of the day's date, because a day counts no others."""
    try:
        place = day_from(plain(stored)).ledger_head
        expected = days_of(entries_up_to(own, place)).get(when)
    except UNREADABLE:
        return WRONG
    return Counted(place, day_item(expected) == stored)


def day_item(day: Day | None) -> Item | None:
    """Return a day as it must be stored."""
    return item(day_attributes(day)) if day else None
