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
    """What a pass over the profiles found.

    seen: users with a profile. candidates: users to look at closely. lapsed: profiles to be lowered.
    in_flight: how many profiles count entries that are not in the lake yet.
    """

    seen: set[str] = field(default_factory=set)
    candidates: set[str] = field(default_factory=set)
    lapsed: list[Item] = field(default_factory=list)
    in_flight: int = 0

    def add(self, other: "ProfileScan") -> None:
        """Add what another part of the table showed."""
        self.seen |= other.seen
        self.candidates |= other.candidates
        self.lapsed += other.lapsed
        self.in_flight += other.in_flight


def scan_profiles(
    scans: Sequence[Scan], known: Iterable[str], lake: Snapshot, shards: int, now: datetime
) -> ProfileScan:
    """Look at every profile once. known: users of whom the lake has something; without a profile each of
    them is a candidate, too.
    """

    def part(number: int) -> ProfileScan:
        found = ProfileScan()
        for page in scans[number]():
            for each in page:
                _scan_profile(found, each, lake, shards, now)
        return found

    whole = ProfileScan()
    for found in in_parallel(part, range(len(scans))):
        whole.add(found)
    whole.candidates |= {user for user in known if user not in whole.seen}
    return whole


def in_parallel(work: Callable[[int], T], parts: Iterable[int]) -> list[T]:
    """Do the work for each part, in threads; returns the results in the order of the parts."""
    with ThreadPoolExecutor(SEGMENTS) as pool:
        return list(pool.map(work, parts))


def _scan_profile(found: ProfileScan, stored: Item, lake: Snapshot, shards: int, now: datetime) -> None:
    user_id = stored["user_id"]["S"]
    found.seen.add(user_id)
    user = lake.user(user_id)
    if is_ahead(stored, user):
        found.in_flight += 1
    if not looks_right(stored, user, shards, now):
        found.candidates.add(user_id)
    elif "run_length" not in stored and has_lapsed(decode_item(stored).get("lapses_at"), now):
        found.lapsed.append(stored)


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
    for some in chunks(days, DAYS_AT_ONCE):
        expected = {(each.user_id, each.activity_date.isoformat()): day_item(each) for each in some}
        for page in read([{"user_id": user, "activity_date": when} for user, when in expected]):
            for stored in page:
                key = stored["user_id"]["S"], stored["activity_date"]["S"]
                if stored == expected[key]:
                    del expected[key]
        users.update(user for user, _ in expected)
    return users
