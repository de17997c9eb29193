"""A pass over the live tables that finds the users who need a closer look.

It may name too many users: one whose newest entries are not in the lake yet looks different. It must miss
nobody.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from adapters.engagement.account_items import lapsed_attributes, profile_attributes
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import chunks
from analytics.recompute.lake_users import LakeUser, LakeUsers
from analytics.reconcile.journals import day_item
from analytics.reconcile.profile_settings import is_newer, readable_profile, settings_agree
from rules.engagement.account_state import Day, Profile
from rules.engagement.archive import is_same_streak
from rules.engagement.reconciliation import has_lapsed
from rules.engagement.streak import is_consistent_streak

SEGMENTS = 8  # parts of a table that are scanned side by side
THREADS = 8
DAYS_AT_ONCE = 1000
PartT = TypeVar("PartT")
ResultT = TypeVar("ResultT")
Scan = Callable[[], Iterable[list[Item]]]  # returns a part of a table, page by page
ReadDays = Callable[[Iterable[Mapping[str, str]]], Iterable[list[Item]]]  # returns the items of some keys


@dataclass(slots=True)
class ProfileScan:
    """The result of a pass over the profiles."""

    seen: set[str] = field(default_factory=set)  # users with a profile
    candidates: set[str] = field(default_factory=set)  # users to examine
    lapsed: list[Item] = field(default_factory=list)  # profiles to take out of the leaderboard's index
    in_flight: int = 0  # the number of profiles that count entries that are not in the lake yet

    def add(self, other: "ProfileScan") -> None:
        """Add the result of another part of the table."""
        self.seen |= other.seen
        self.candidates |= other.candidates
        self.lapsed += other.lapsed
        self.in_flight += other.in_flight


def scan_profiles(
    scans: Sequence[Scan], expected: Iterable[str], lake: LakeUsers, shards: int, now: datetime
) -> ProfileScan:
    """Scan the profiles of some parts of the table.

    expected: users whom the lake knows. One of them without a profile is a candidate, too.
    shards: of a region in the leaderboard's index.
    """

    def run_scan(scan: Scan) -> ProfileScan:
        result = ProfileScan()
        for page in scan():
            for item in page:
                _scan_profile(result, item, lake, shards, now)
        return result

    total = ProfileScan()
    for result in in_parallel(run_scan, scans):
        total.add(result)
    total.candidates |= {user for user in expected if user not in total.seen}
    return total


def in_parallel(work: Callable[[PartT], ResultT], parts: Iterable[PartT]) -> list[ResultT]:
    """Do the work for each part, in threads; returns the results in the order of the parts."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, parts))


def _scan_profile(result: ProfileScan, stored: Item, lake: LakeUsers, shards: int, now: datetime) -> None:
    """Add one profile to a result."""
    user_id = stored["user_id"]["S"]
    result.seen.add(user_id)
    user = lake.user(user_id)
    if is_ahead(stored, user):
        result.in_flight += 1
    if not looks_right(stored, user, shards, now):
        result.candidates.add(user_id)
    elif "run_length" not in stored and has_lapsed(decode_item(stored).get("lapses_at"), now):
        result.lapsed.append(stored)


def is_ahead(stored: Item, lake: LakeUser | None) -> bool:
    """Whether a profile counts entries that are not in the lake yet."""
    head = stored.get("ledger_head", {}).get("S", "")
    return bool(head > (lake.head or "" if lake else ""))


def looks_right(stored: Item, lake: LakeUser | None, shards: int, now: datetime) -> bool:
    """Whether a profile agrees with the lake, and its item is exactly as this system would write it."""
    profile = readable_profile(stored)
    if profile is None or lake is None or not lake.is_sound:
        return False
    if not _is_as_written(stored, profile, shards, now):
        return False
    if profile.streak and not is_consistent_streak(profile.streak):
        return False
    head = (profile.head.created_at, profile.head.seq) if profile.head else (None, None)
    journal = (profile.total_points, profile.balance, *head)
    if journal != (lake.total_points, lake.balance, lake.head, lake.seq):
        return False
    if not is_same_streak(profile.streak, profile.cover.archived, lake.streak):
        return False
    return is_newer(profile, lake) or (profile.version == lake.version and settings_agree(profile, lake))


def _is_as_written(stored: Item, profile: Profile, shards: int, now: datetime) -> bool:
    """Whether this system has written an item for the profile. A lapsed streak may have two forms."""
    attributes = profile_attributes(profile, shards)
    if stored == encode_item(attributes):
        return True
    is_lapsed = has_lapsed(attributes.get("lapses_at"), now)
    return is_lapsed and bool(stored == encode_item(lapsed_attributes(attributes)))


def users_of_other_days(days: Iterable[Day], read: ReadDays) -> set[str]:
    """Return the users for whom DailyActivity lacks one of these days, or has another item of it."""
    users: set[str] = set()
    for batch in chunks(days, DAYS_AT_ONCE):
        expected = {(day.user_id, day.activity_date.isoformat()): day_item(day) for day in batch}
        for page in read([{"user_id": user, "activity_date": when} for user, when in expected]):
            for stored in page:
                key = stored["user_id"]["S"], stored["activity_date"]["S"]
                if stored == expected[key]:
                    del expected[key]
        users.update(user for user, _ in expected)
    return users
