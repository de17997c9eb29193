"""The cheap phase: one pass over the live tables finds the users who need a closer look.

It may name too many (a user in flight looks different from the lake), but it must miss nobody.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from adapters.engagement.account_items import lapsed_attributes, profile_attributes
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import chunks
from analytics.recompute.recompute import LakeUser, Snapshot
from analytics.reconcile.journals import day_item
from analytics.reconcile.profile_settings import is_newer, readable_profile, settings_agree
from rules.engagement.account_state import Day
from rules.engagement.archive import is_same_streak
from rules.engagement.reconciliation import has_lapsed
from rules.engagement.streak import is_possible_streak

SEGMENTS = 8
DAYS_AT_ONCE = 1000
T = TypeVar("T")
Scan = Callable[[], Iterable[list[Item]]]  # a part of a table, page by page
ReadDays = Callable[[Iterable[Mapping[str, str]]], Iterable[list[Item]]]  # the stored items of some keys


@dataclass(slots=True)
class ProfileScan:
    """What a pass over the profiles found."""

    seen: set[str] = field(default_factory=set)  # users with a profile
    candidates: set[str] = field(default_factory=set)  # users to look at closely
    lapsed: list[Item] = field(default_factory=list)  # profiles to be lowered
    in_flight: int = 0  # how many profiles count entries that are not in the lake yet

    def add(self, other: "ProfileScan") -> None:
        """Add what another part of the table showed."""
        self.seen |= other.seen
        self.candidates |= other.candidates
        self.lapsed += other.lapsed
        self.in_flight += other.in_flight


def scan_profiles(
    scans: Sequence[Scan], expected: Iterable[str], lake: Snapshot, shards: int, now: datetime
) -> ProfileScan:
    """Look at every profile once. expected: users of whom the lake has something.

    An expected user without a profile is a candidate, too.
    """

    def run_scan(number: int) -> ProfileScan:
        result = ProfileScan()
        for page in scans[number]():
            for item in page:
                _scan_profile(result, item, lake, shards, now)
        return result

    total = ProfileScan()
    for result in in_parallel(run_scan, range(len(scans))):
        total.add(result)
    total.candidates |= {user for user in expected if user not in total.seen}
    return total


def in_parallel(work: Callable[[int], T], parts: Iterable[int]) -> list[T]:
    """Do the work for each part, in threads; returns the results in the order of the parts."""
    with ThreadPoolExecutor(SEGMENTS) as pool:
        return list(pool.map(work, parts))


def _scan_profile(result: ProfileScan, stored: Item, lake: Snapshot, shards: int, now: datetime) -> None:
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
    """Whether a profile says what the lake says, and its item is exactly what this system would write."""
    profile = readable_profile(stored)
    if profile is None or lake is None or not lake.is_sound:
        return False
    attributes = profile_attributes(profile, shards)
    if stored != encode_item(attributes) and not (
        has_lapsed(attributes.get("lapses_at"), now) and stored == encode_item(lapsed_attributes(attributes))
    ):
        return False
    if profile.streak and not is_possible_streak(profile.streak):
        return False
    head = (profile.head.created_at, profile.head.seq) if profile.head else (None, None)
    journal = (profile.total_points, profile.balance, *head)
    if journal != (lake.total_points, lake.balance, lake.head, lake.seq):
        return False
    if not is_same_streak(profile.streak, profile.cover.archived, lake.streak):
        return False
    return is_newer(profile, lake) or (profile.version == lake.version and settings_agree(profile, lake))


def users_of_other_days(days: Iterable[Day], read: ReadDays) -> set[str]:
    """Return the users of whom DailyActivity lacks one of these days, or has it differently."""
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
