"""Archives of users: the part of a streak's protection (freezes, pauses) that is too old for the profile.

A write of more than a kilobyte costs another unit. So if a profile's item comes close to that, its writer
moves old protection into the user's archive (rules/engagement/archive.py). One transaction writes profile and
archive, and the profile has the archive's digest. So whoever finds another archive knows that the profile has
changed since it was read.
"""

from dataclasses import replace
from datetime import date
from typing import Any

from adapters.engagement.account_items import ARCHIVE, profile_attributes
from adapters.engagement.kept_items import KeptItems
from adapters.platform.items import Item, encode_item, item_bytes
from rules.engagement.account_state import Profile
from rules.engagement.archive import Archive, archivable, archive_streak, with_archive
from rules.engagement.streak import resumed_streak

# Only whole months are archived. So the protection of one more month has to fit between this and 1,024 bytes.
PROFILE_BYTES_MAX = 800
# Archiving stops when the profile is below this part of PROFILE_BYTES_MAX. What is left in the profile is
# enough for most reads of the past, because they concern the last years.
PART_KEPT = 0.75


class ArchiveUnusable(Exception):
    """A profile cannot be joined with its archive.

    Either the archive is another one than the profile names, because both have changed since the profile was
    read; or it is missing or damaged.
    """


class ArchiveStore:
    """Archives of all users."""

    def __init__(self, dynamodb: Any, days: str) -> None:
        """days: the name of the table DailyActivity."""
        self._items = KeptItems(dynamodb, days, ARCHIVE)

    def get(self, user_id: str) -> Archive | None:
        """Read a user's archive, strongly consistent; None if there is none, or it is damaged."""
        return self._items.get(user_id, Archive.of, is_strong=True)

    def full_profile(self, profile: Profile) -> Profile:
        """Return a profile together with its archive; raises ArchiveUnusable."""
        mark = profile.cover.archived
        if mark is None or profile.streak is None:
            return profile
        archive = self.get(profile.user_id)
        if archive is None or archive.digest != mark.digest:
            raise ArchiveUnusable(profile.user_id)
        streak, cover = with_archive(profile.streak, profile.cover, archive)
        return replace(profile, streak=streak, cover=cover)

    def with_protection_since(self, profile: Profile, since: date) -> Profile:
        """Return a profile that a fold of dates from `since` on can start from.

        The archive is read only if the profile alone does not reach that far back. Raises ArchiveUnusable.
        """
        # resumed_streak is None if the profile itself has no checkpoint before `since`.
        return profile if resumed_streak(profile.streak, since) else self.full_profile(profile)

    def split(self, profile: Profile, shards: int) -> tuple[Item, dict[str, Any] | None]:
        """Return a profile's item, and the arguments of a put of its archive; None if the archive stays as it
        is.

        shards: see profile_attributes. If the archive is unusable, nothing is archived. Then the profile
        grows until the archive is repaired.
        """
        item = encode_item(profile_attributes(profile, shards))
        # archivable returns the dates up to which an archive may reach, the oldest first; [] if too early.
        if item_bytes(item) <= PROFILE_BYTES_MAX or not archivable(profile.streak, profile.cover):
            return item, None
        try:
            full = self.full_profile(profile)
        except ArchiveUnusable:
            return item, None
        assert full.streak is not None  # noqa: S101 (a profile without a streak has nothing archivable)
        archive = None
        for until in archivable(full.streak, full.cover):
            (streak, cover), archive = archive_streak(full.streak, full.cover, until)
            item = encode_item(profile_attributes(replace(profile, streak=streak, cover=cover), shards))
            if item_bytes(item) <= PROFILE_BYTES_MAX * PART_KEPT:
                break
        return item, self._items.put(profile.user_id, archive.text) if archive else None
