"""What is kept of a user beside the profile: an item of DailyActivity each, in the place of a date.

`archive` is what the profile has put away of the past (rules.engagement.archive), `goals` and `totals` what
readers have settled of streaks and achievements (adapters/engagement/goals.py).

A profile whose item comes close to a kilobyte, which is where a write begins to cost another unit, puts away
what is settled. Profile and archive are written in one transaction, and the profile names its archive by a
digest. So a reader who finds another archive knows that the profile has changed since it was read.
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

# What a month adds before the next one can be put away has to fit below 1,024.
PROFILE_BYTES_MAX = 800
# No more is put away than brings a profile below this part of it. So questions about the last years, which
# are most, do not need the archive.
PART_KEPT = 0.75
Kept = TypeVar("Kept")


class KeptItems:
    """The items of one place, of all users."""

    def __init__(self, dynamodb: Any, days: str, place: str) -> None:
        self._dynamodb, self._days, self._place = dynamodb, days, place

    def get(self, user_id: str, read: Callable[[str], Kept], *, is_strong: bool = False) -> Kept | None:
        """Return what is kept of a user; None for nothing, or for a damaged item.

        read: reads the item's text; raises ValueError for one that it did not write.
        """
        answer = self._dynamodb.get_item(
            TableName=self._days,
            Key=encode_item({"user_id": user_id, "activity_date": self._place}),
            ConsistentRead=is_strong,
        )
        try:
            return read(zlib.decompress(answer["Item"]["packed"]["B"]).decode())
        except (KeyError, TypeError, ValueError, zlib.error):
            return None

    def put(self, user_id: str, text: str) -> dict[str, Any]:
        """Return the arguments of a put. is_passive keeps it out of the lake, as a day without activity."""
        item = encode_item({"user_id": user_id, "activity_date": self._place, "is_passive": True})
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

    def whole(self, profile: Profile) -> Profile:
        """Return a profile with all that it has put away; raises ArchiveMoved."""
        mark = profile.cover.archived
        if mark is None or profile.streak is None:
            return profile
        archive = self.get(profile.user_id)
        if archive is None or archive.digest != mark.digest:
            raise ArchiveMoved(profile.user_id)
        streak, cover = with_archive(profile.streak, profile.cover, archive)
        return replace(profile, streak=streak, cover=cover)

    def reaching(self, profile: Profile, since: date) -> Profile:
        """Return a profile that a fold of dates from `since` on can start from: whole only if it must be.

        Raises ArchiveMoved.
        """
        return profile if resumed_streak(profile.streak, since) else self.whole(profile)

    def split(self, profile: Profile, shards: int) -> tuple[Item, dict[str, Any] | None]:
        """Return a profile's item; and a put of its archive if that has to be written with it.

        shards: see profile_attributes. Raises nothing for an archive that is damaged: then the profile grows
        until it is repaired.
        """
        stored = encode_item(profile_attributes(profile, shards))
        if item_bytes(stored) <= PROFILE_BYTES_MAX or not archivable(profile.streak, profile.cover):
            return stored, None
        try:
            whole = self.whole(profile)
        except ArchiveMoved:
            return stored, None
        assert whole.streak is not None  # noqa: S101 (archivable)
        smaller, archive = stored, None
        for until in archivable(whole.streak, whole.cover):
            (streak, cover), archive = archive_streak(whole.streak, whole.cover, until)
            smaller = encode_item(profile_attributes(replace(profile, streak=streak, cover=cover), shards))
            if item_bytes(smaller) <= PROFILE_BYTES_MAX * PART_KEPT:
                break
        return smaller, self._items.put(profile.user_id, archive.text) if archive else None
