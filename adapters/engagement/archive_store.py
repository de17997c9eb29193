"""What profiles have put away of their past (rules.engagement.archive): an item of DailyActivity each.

A profile whose item comes close to a kilobyte, which is where a write begins to cost another unit, puts away
what is settled. Profile and archive are written in one transaction, and the profile names its archive by a
digest. So a reader who finds another archive knows that the profile has changed since it was read.
"""

from dataclasses import replace
from datetime import date
from typing import Any

from adapters.engagement.account_items import ARCHIVE, archive_from, archive_item, profile_attributes
from adapters.platform.items import Item, item, item_bytes
from rules.engagement.account_state import Profile
from rules.engagement.archive import Archive, archivable, put_away, with_archive
from rules.engagement.streak import resumed_streak

# What a month adds before the next one can be put away has to fit below 1,024.
PROFILE_BYTES_MAX = 800
# No more is put away than brings a profile below this part of it. So questions about the last years, which
# are most, do not need the archive.
PART_KEPT = 0.75


class ArchiveMoved(Exception):
    """The archive is not the one that the profile names: the profile has changed since it was read."""


class ArchiveStore:
    """Archives of all users."""

    def __init__(self, dynamodb: Any, days: str) -> None:
        self._dynamodb, self._days = dynamodb, days

    def get(self, user_id: str) -> Archive | None:
        """Read a user's archive, strongly consistent; None if there is none, or it is damaged."""
        answer = self._dynamodb.get_item(
            TableName=self._days,
            Key=item({"user_id": user_id, "activity_date": ARCHIVE}),
            ConsistentRead=True,
        )
        return archive_from(answer["Item"]) if "Item" in answer else None

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

    def items(self, profile: Profile, shards: int) -> tuple[Item, Item | None]:
        """Return a profile's item, and its archive's if that has to be written with it.

        Raises nothing for an archive that is damaged: then the profile grows until it is repaired.
        """
        stored = item(profile_attributes(profile, shards))
        if item_bytes(stored) <= PROFILE_BYTES_MAX or not archivable(profile.streak, profile.cover):
            return stored, None
        try:
            all_of_it = self.whole(profile)
        except ArchiveMoved:
            return stored, None
        assert all_of_it.streak is not None  # noqa: S101 (archivable)
        smaller, archive = stored, None
        for until in archivable(all_of_it.streak, all_of_it.cover):
            (streak, cover), archive = put_away(all_of_it.streak, all_of_it.cover, until)
            smaller = item(profile_attributes(replace(profile, streak=streak, cover=cover), shards))
            if item_bytes(smaller) <= PROFILE_BYTES_MAX * PART_KEPT:
                break
        return smaller, archive_item(profile.user_id, archive) if archive else None

    def reaching(self, profile: Profile, since: date) -> Profile:
        """Return a profile that a fold of dates from `since` on can start from: whole only if it must be.

        Raises ArchiveMoved.
        """
        return profile if resumed_streak(profile.streak, since) else self.whole(profile)
