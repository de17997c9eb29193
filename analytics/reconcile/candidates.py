"""The cheap phase: one pass over the live tables finds the users who need a closer look. What is stored is
compared with what must be, attribute by attribute.

It may name too many (a user in flight looks different from the lake), but it must miss nobody.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from adapters.engagement.account_items import (
    UNDATED,
    day_attributes,
    day_from,
    lapsed_attributes,
    profile_attributes,
)
from adapters.platform.items import Item, decode_item, encode_item
from analytics.recompute.lake_days import Flags, LakeDays, signature
from analytics.recompute.recompute import LakeUser, Snapshot
from analytics.reconcile.profile_settings import UNREADABLE, is_newer, readable_profile, settings_agree
from rules.engagement.archive import is_same_streak
from rules.engagement.reconciliation import has_lapsed
from rules.engagement.streak import is_possible_streak

SEGMENTS = 8
T = TypeVar("T")
Scan = Callable[[], Iterable[list[Item]]]  # a part of a table, page by page


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


def scan_days(scans: Sequence[Scan], lake: LakeDays) -> set[str]:
    """Return the users with a day that differs from the lake's entries, or that is missing."""
    looked = in_parallel(lambda number: _days_of(scans[number](), lake), range(len(scans)))
    missing = lake.unseen()
    for _, known in looked:
        missing &= ~known
    return lake.users(missing).union(*(users for users, _ in looked))


def _days_of(pages: Iterable[list[Item]], lake: LakeDays) -> tuple[set[str], Flags]:
    found: set[str] = set()
    known = ~lake.unseen()
    for page in pages:
        for stored in page:
            if stored["activity_date"]["S"] in UNDATED:
                continue
            place = lake.place(stored["user_id"]["S"], stored["activity_date"]["S"])
            if place is not None:
                known[place] = True
            if place is None or not _is_day_right(stored, lake.signature(place)):
                found.add(stored["user_id"]["S"])
    return found, known


def _is_day_right(stored: Item, expected: int) -> bool:
    try:
        day = day_from(decode_item(stored))
        numbers = (day.events_count, day.points_earned, *day.points_by_cap.values(), day.passive_events)
        numbers += (day.reversed_events,)
        return (
            all(type(each) is int for each in numbers)  # the signature does not show types
            and encode_item(day_attributes(day)) == stored
            and signature(day) == expected
        )
    except UNREADABLE:
        return False


# Compares what is stored with what must be, attribute by attribute.


@dataclass(frozen=True, slots=True)
class Difference:
    """One attribute of one item that is not what it must be. None: the attribute is absent.

    table: UserStreaks, DailyActivity or UserStats; or `lake.ENTITY`, of which a row is not what it must be.
    key: the day's date, or "" for a profile. attribute: "" if the whole item is missing, or is one too many.
    """

    user_id: str
    table: str
    key: str
    attribute: str
    stored: Any
    expected: Any


def differences(
    user_id: str, table: str, key: str, stored: Item | None, expected: Item | None
) -> list[Difference]:
    """Compare an item with what it must be. A value of another type is a difference too."""
    if stored == expected:
        return []
    was, must = _readable(stored), _readable(expected)
    if stored is None or expected is None:
        return [Difference(user_id, table, key, "", was or None, must or None)]
    return [
        Difference(user_id, table, key, name, was.get(name), must.get(name))
        for name in sorted(stored.keys() | expected.keys())
        if stored.get(name) != expected.get(name)
    ]


def _readable(stored: Item | None) -> dict[str, Any]:
    """Return plain values. A value of a type that we do not use stays in its wire format."""
    return decode_item(stored or {})
