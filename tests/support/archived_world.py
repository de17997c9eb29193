"""One user whose profile puts away what is settled whenever it can, by the store's own code."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

from adapters.engagement.account_items import profile_from
from adapters.engagement.account_store import AccountStore, ArchiveStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.expiry import Settler
from adapters.platform.items import Item, decode_item
from ingest.engagement.profiles import Profiles
from rules.engagement.account_state import Day, Profile
from tests.support.account_world import World
from tests.support.books import KnownBooks


@dataclass
class ArchiveTable:
    """The one item that ArchiveStore reads."""

    stored: Item | None = None

    def get_item(self, **_: object) -> dict[str, Item]:
        return {"Item": self.stored} if self.stored else {}


@dataclass
class ArchivedWorld(World):
    """written: the profile's item. archived: how often something was put away."""

    table: ArchiveTable = field(default_factory=ArchiveTable)
    written: Item = field(default_factory=dict)
    archived: int = 0

    @property
    def archives(self) -> ArchiveStore:
        return ArchiveStore(self.table, "DailyActivity")

    def put(self, profile: Profile) -> None:
        self.written, archive = self.archives.split(profile, 0)
        self.profile = profile_from(decode_item(self.written))
        if archive:
            self.archived += 1
            self.table.stored = archive["Item"]

    def reaching(self, since: date) -> Profile:
        return self.archives.with_protection_since(self.profile, since)

    def whole(self) -> Profile:
        return self.archives.with_archive_read(self.profile)


class OneUser(AccountStore):
    """A store that has one user's profile, archive and days in memory."""

    def __init__(self, profile: Profile, table: ArchiveTable, days: Mapping[date, Day | None]) -> None:
        ledger: Any = None
        super().__init__(table, "UserStreaks", "DailyActivity", ledger, 4)
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
    profile: Profile, table: ArchiveTable, days: Mapping[date, Day | None], asked: date, now: datetime
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the API answers about a date: the profile as of it, and why it counts."""
    events: Any = NoEvents()
    user = OneUser(profile, table, days)
    profiles = Profiles(user, events, EngagementCache(""), Settler(user, KnownBooks()))
    return profiles.view("u", asked, now), profiles.explain("u", asked, now)


def with_pause(profile: Profile, first: date, last: date) -> Profile:
    """Return a profile with one pause more."""
    pauses = tuple(sorted((*profile.cover.pauses, (first, last))))
    return replace(profile, cover=replace(profile.cover, pauses=pauses), version=profile.version + 1)
