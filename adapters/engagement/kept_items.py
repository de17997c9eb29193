"""Items that a user has beside the profile, in the table DailyActivity with a word in place of a date.

`archive` has the old protection of the streak (rules.engagement.archive). `goals` and `totals` have the
settled part of streaks and achievements, which readers store (adapters/engagement/goals.py).

A write of more than a kilobyte costs another unit. So if a profile's item comes close to that, its writer
moves old protection into the archive. Profile and archive are written in one transaction, and the profile
names its archive by a digest. So a reader who finds another archive knows that the profile has changed since
it was read.
"""

import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any, TypeVar

from adapters.engagement.account_items import ARCHIVE, profile_attributes
from adapters.platform.items import Item, encode_item, item_bytes
from rules.engagement.account_state import Profile
from rules.engagement.archive import Archive, archivable, archive_streak, with_archive
from rules.engagement.streak import resumed_streak

# The protection of one more month has to fit below 1,024, because only whole months are archived.
PROFILE_BYTES_MAX = 800
# Archiving stops when the profile is below this part of it. Most reads of the past are of the last years, and
# need no archive then.
PART_KEPT = 0.75
Value = TypeVar("Value")


class KeptItems:
    """The items of all users under one word. sort_key: the word. days: the table's name."""

    def __init__(self, dynamodb: Any, days: str, sort_key: str) -> None:
        self._dynamodb, self._days, self._sort_key = dynamodb, days, sort_key

    def get(self, user_id: str, read: Callable[[str], Value], *, is_strong: bool = False) -> Value | None:
        """Return the content of a user's item; None if there is none, or it is damaged.

        read: reads the item's text; raises ValueError for a text of another form.
        """
        answer = self._dynamodb.get_item(
            TableName=self._days,
            Key=encode_item({"user_id": user_id, "activity_date": self._sort_key}),
            ConsistentRead=is_strong,
        )
        try:
            return read(zlib.decompress(answer["Item"]["packed"]["B"]).decode())
        except (KeyError, TypeError, ValueError, zlib.error):
            return None

    def put(self, user_id: str, text: str) -> dict[str, Any]:
        """Return the arguments of a put. is_passive keeps the item out of the lake."""
        item = encode_item({"user_id": user_id, "activity_date": self._sort_key, "is_passive": True})
        packed: Item = {"packed": {"B": zlib.compress(text.encode())}}
        return {"TableName": self._days, "Item": item | packed}


class ArchiveMoved(Exception):
    """The archive is not the one that the profile names: the profile has changed since it was read."""


class ArchiveStore:
    """Archives of all users."""

    def __init__(self, dynamodb: Any, days: str) -> None:
        self._items = KeptItems(dynamodb, days, ARCHIVE)

    def get(self, user_id: str) -> Archive | None:
        """Read a user's archive, strongly consistent; None if there is none, or it is damaged."""
        return self._items.get(user_id, Archive.of, is_strong=True)

    def full_profile(self, profile: Profile) -> Profile:
        """Return a profile together with its archive; raises ArchiveMoved."""
        mark = profile.cover.archived
        if mark is None or profile.streak is None:
            return profile
        archive = self.get(profile.user_id)
        if archive is None or archive.digest != mark.digest:
            raise ArchiveMoved(profile.user_id)
        streak, cover = with_archive(profile.streak, profile.cover, archive)
        return replace(profile, streak=streak, cover=cover)

    def with_protection_since(self, profile: Profile, since: date) -> Profile:
        """Return a profile that a fold of dates from `since` on can start from.

        The archive is read only if the profile alone does not reach that far back. Raises ArchiveMoved.
        """
        return profile if resumed_streak(profile.streak, since) else self.full_profile(profile)

    def split(self, profile: Profile, shards: int) -> tuple[Item, dict[str, Any] | None]:
        """Return a profile's item; and a put of its archive if that has to be written with it.

        shards: see profile_attributes. If the archive is damaged, nothing is archived, and the profile grows
        until the archive is repaired.
        """
        item = encode_item(profile_attributes(profile, shards))
        if item_bytes(item) <= PROFILE_BYTES_MAX or not archivable(profile.streak, profile.cover):
            return item, None
        try:
            full = self.full_profile(profile)
        except ArchiveMoved:
            return item, None
        assert full.streak is not None  # noqa: S101 (archivable)
        archive = None
        for until in archivable(full.streak, full.cover):
            (streak, cover), archive = archive_streak(full.streak, full.cover, until)
            item = encode_item(profile_attributes(replace(profile, streak=streak, cover=cover), shards))
            if item_bytes(item) <= PROFILE_BYTES_MAX * PART_KEPT:
                break
        return item, self._items.put(profile.user_id, archive.text) if archive else None
