"""One user whose profile is brought forward whenever it can be, by the store's own code."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

import pytest

from adapters.engagement import account_items
from adapters.engagement.account_items import profile_from, profile_item
from adapters.engagement.account_store import AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.expiry import Settler
from adapters.platform.items import Item, decode_item
from ingest.engagement.profiles import Profiles
from rules.days import EPOCH, unstamp
from rules.engagement import brought_forward
from rules.engagement.account_state import Day, Profile
from rules.engagement.brought_forward import begins_before, whole_profile
from rules.engagement.ledger import Draft, Entry, EntryKind, FreezeNote, Setting
from tests.support.account_world import World
from tests.support.books import KnownBooks


def keep_profiles_short(patch: pytest.MonkeyPatch) -> None:
    """Bring every profile forward as far as it can be, however small it is."""
    patch.setattr(account_items, "PROFILE_BYTES_MAX", 0)
    patch.setattr(brought_forward, "LEFT_OUT_MIN", 1)


def protection(entries: Iterable[Entry], until: str) -> list[Entry]:
    """Return the entries that LedgerStore.protection returns."""
    return [
        entry
        for entry in entries
        if entry.created_at <= until and (entry.draft.freeze or entry.draft.setting is Setting.PAUSE)
    ]


def protection_of(profile: Profile) -> list[Entry]:
    """Return entries that lead to a whole profile's freezes, covered dates and pauses."""
    drafts = []
    for day, change in profile.cover.freezes:
        note = FreezeNote.GRANTED if change > 0 else FreezeNote.REVOKED
        drafts += [Draft(EntryKind.REDEEM, 0, freeze=note, freeze_date=str(day))] * abs(change)
    for day in profile.streak.spent if profile.streak else ():
        drafts.append(Draft(EntryKind.ADJUST, 0, freeze=FreezeNote.SPENT, freeze_date=str(day)))
    for first, last in profile.cover.pauses:
        drafts.append(Draft(EntryKind.SETTING, 0, setting=Setting.PAUSE, set_to=f"{first}/{last}"))
    return [Entry(profile.user_id, "2000-01-01T00:00:00.000000Z", 0, 0, draft) for draft in drafts]


@dataclass
class ShortWorld(World):
    """written: the profile's item. brought: how often it was brought forward to a later date."""

    written: Item = field(default_factory=dict)
    brought: int = 0

    def put(self, profile: Profile) -> None:
        before = self.profile.cover.brought_forward
        at = unstamp(profile.updated_at) if profile.updated_at else EPOCH
        self.written = profile_item(profile, 0, at)
        self.profile = profile_from(decode_item(self.written))
        sums = self.profile.cover.brought_forward
        self.brought += sums is not None and (before is None or before.start.last < sums.start.last)

    def reaching(self, since: date) -> Profile:
        if begins_before(self.profile, since):
            return self.profile
        newest = self.profile.head.created_at if self.profile.head else ""
        return whole_profile(self.profile, protection(self.entries, newest))

    def whole(self) -> Profile:
        return self.reaching(date.min)


class EntriesInMemory:
    """A ledger of which only what protects a streak is read."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = list(entries)

    def protection(self, _: str, until: str) -> list[Entry]:
        return protection(self._entries, until)


class OneUser(AccountStore):
    """A store that has one user's profile, days and ledger in memory."""

    def __init__(self, profile: Profile, entries: Iterable[Entry], days: Mapping[date, Day | None]) -> None:
        ledger: Any = EntriesInMemory(entries)
        super().__init__(None, "UserStreaks", "DailyActivity", ledger, 4)
        self._profile, self._active = profile, sorted(days)

    def profile(self, user_id: str, is_strong: bool = True) -> Profile:
        return self._profile

    def _query_days(self, user_id: str, first: date, last: date, **options: Any) -> Any:
        return ({"activity_date": {"S": day.isoformat()}} for day in self._active if first <= day <= last)

    def days(self, keys: Any) -> dict[tuple[str, date], Day]:
        return {}


class NoEvents:
    """A store of events that has none."""

    def get(self, *_: object) -> None:
        return None


def shown(
    profile: Profile, entries: Iterable[Entry], days: Mapping[date, Day | None], asked: date, now: datetime
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the API answers about a date: the profile as of it, and why it counts."""
    events: Any = NoEvents()
    user = OneUser(profile, entries, days)
    profiles = Profiles(user, events, EngagementCache(""), Settler(user, KnownBooks()))
    return profiles.view("u", asked, now), profiles.explain("u", asked, now)


def with_pause(profile: Profile, first: date, last: date) -> Profile:
    """Return a profile with one pause more."""
    pauses = tuple(sorted((*profile.cover.pauses, (first, last))))
    return replace(profile, cover=replace(profile.cover, pauses=pauses), version=profile.version + 1)
