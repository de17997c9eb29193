"""The settings that a user's profile must have (zones, pauses, skipped dates), which no ledger has.

What counts depends on which version of the profile is the newest. The first case that is true decides:

    case                                               what counts                         function
    the item can be read, and is newer than the lake   the item                            is_newer
    the item is damaged, and shows that it is newer    the item, then the lake's version   _fill_from_lake
    any other                                          the lake's version                  _with_lake_settings

"The lake's version" is the newest one there. If both have the same number, the lake's counts, because this
system never changes an item without a new number.

In the last two cases, zones may be missing, because the lake's version does not hold them. They come from
the lake's events and older versions (_with_past).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from adapters.engagement.account_items import profile_attributes, profile_from
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.objects import Objects
from analytics.lake.curated_files import tables
from analytics.lake.layout import curated_files
from analytics.recompute.lake_users import LakeUser
from analytics.recompute.user_fold import pauses_of
from rules.days import stamp, zone
from rules.engagement.account import TZ_CHANGES_KEPT_MAX
from rules.engagement.account_state import Profile
from rules.engagement.archive import Archive, Spans, is_old_pause
from rules.engagement.streak import ArchiveMark, Cover

# What reading a damaged item or row may raise.
UNREADABLE = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)
BLANK = {"version": 0, "total_bestie_points": 0, "balance": 0, "timezone": "UTC", "streak_updated_at": ""}
# The attributes of a profile's item that do not follow from the ledger.
KEPT = (
    "version",
    "timezone_chosen",
    "observed_zone",
    "observed_at",
    "streak_updated_at",
    "pauses",
    "skipped_dates",
    "opening",
    "recent_tz_changes",
    "zones_seen",
    "skews_seen",
    "amnesties",
    "backfilled",
    "tz_review",
    "review_since",
    "review_evidence",
    "released_at",
    "alias",
    "holds",
    "expires_next",
    "expiry_settled_on",
    "expiry_settled_points",
)
ARCHIVED = "archived"  # of a profile that has put older pauses away
Changes = tuple[tuple[str, str], ...]
READERS = 4
FIRST_VERSION = 1
OBSERVED_COLUMNS = ("user_id", "event_id", "timezone")
CHOSEN_COLUMNS = ("user_id", "version", "timezone_chosen", "updated_at")


@dataclass(frozen=True, slots=True)
class PastSettings:
    """The settings that the lake's events and older versions of a profile have."""

    observed_zone: str | None = None  # the newest zone that an event named
    observed_at: str = ""  # that event's id
    tz_changes: Changes = ()  # (when, zone)


def readable_profile(stored: Item) -> Profile | None:
    """Return the profile that an item holds. None if it cannot be read, or contradicts itself."""
    try:
        profile = profile_from(decode_item(stored))
        _check_consistent(profile)
    except UNREADABLE:
        return None
    return profile


def _check_consistent(profile: Profile) -> None:
    """Raise an error of UNREADABLE if this system cannot have written a profile."""
    datetime.fromisoformat(profile.updated_at)
    zone(profile.zone)
    streak, head = profile.streak, profile.head
    numbers = [profile.version, profile.total_points, profile.expiry.settled_points, profile.backfilled]
    numbers += [streak.length, streak.longest, streak.active_days] if streak else []
    numbers += [head.seq, head.balance] if head else []
    texts = (profile.observed_at, profile.applied_through, head.created_at if head else "")
    if not all(type(number) is int for number in numbers) or not all(isinstance(text, str) for text in texts):
        raise TypeError(profile.user_id)
    last_chosen = profile.tz_changes[-1][1] if profile.tz_changes else None
    if last_chosen != profile.timezone:
        raise ValueError("the chosen zone is not the last one in the list of changes")
    if bool(profile.observed_zone) != bool(profile.observed_at):
        raise ValueError("an observed zone without the event that named it, or the reverse")


def salvaged_settings(user_id: str, stored: Item | None) -> tuple[Profile, frozenset[str]]:
    """Return the settings of an item as far as they can be read, and the names of unreadable attributes.

    Each attribute is read by itself, so that one that is damaged spoils no other.
    """
    readable: dict[str, Any] = {}
    unreadable = set()
    for name in KEPT:
        if stored is None or name not in stored:
            continue
        attribute = {name: stored[name]}
        try:
            profile = profile_from({"user_id": user_id, **BLANK, **decode_item(attribute)})
            zone(profile.zone)
            is_same = encode_item({name: profile_attributes(profile, 1)[name]}) == attribute
            if not is_same:
                raise ValueError(name)
            _check_types(profile)
        except UNREADABLE:
            unreadable.add(name)
        else:
            readable |= decode_item(attribute)
    return profile_from({"user_id": user_id, **BLANK, **readable}), frozenset(unreadable)


def _check_types(profile: Profile) -> None:
    """Raise an error of UNREADABLE if a value has a wrong type."""
    if profile.updated_at != "":
        datetime.fromisoformat(profile.updated_at)
    numbers = (profile.version, profile.expiry.settled_points, profile.backfilled)
    if not all(type(number) is int for number in numbers) or not isinstance(profile.observed_at, str):
        raise TypeError(profile.user_id)


class Newest(Enum):
    """Which version of a profile is the newest one."""

    ITEM = "the stored item"
    DAMAGED_ITEM = "the stored item, as far as it can be read"
    IN_LAKE = "the newest one in the lake"


def is_newer(stored: Profile, lake: LakeUser | None) -> bool:
    """Whether a stored profile may be a version that has not arrived in the lake yet."""
    if lake is None or lake.version is None or lake.updated_at is None:
        return True
    if stored.version <= lake.version:
        return False
    # No writer of ours makes a new version without a change.
    head = stored.head.created_at if stored.head else None
    return not settings_agree(stored, lake) or head != lake.head


def _newest_of(profile: Profile | None, settings: Profile, lake: LakeUser) -> Newest:
    """Tell which version is the newest. profile: None if the item is damaged; settings: what is readable."""
    if lake.version is None or lake.updated_at is None or (profile and is_newer(profile, lake)):
        return Newest.ITEM
    # A damaged item cannot be compared as a whole. Its number and its time must both be readable, and newer.
    written_at = _moment(settings.updated_at)
    damaged_item_is_newer = settings.version > lake.version and written_at not in (None, lake.updated_at)
    return Newest.DAMAGED_ITEM if damaged_item_is_newer else Newest.IN_LAKE


def settings_agree(stored: Profile, lake: LakeUser) -> bool:
    """Whether a stored profile has the settings of the lake's newest version."""
    cover, lake_cover = stored.cover, lake.cover
    return (
        (stored.timezone, stored.zone, stored.tz_review) == (lake.chosen, lake.zone, lake.review)
        and _pauses_agree(cover, lake_cover)
        and (cover.skipped, cover.opening) == (lake_cover.skipped, lake_cover.opening)
        and _moment(stored.updated_at) == lake.updated_at
    )


def _pauses_agree(cover: Cover, lake_cover: Cover) -> bool:
    """Whether the lake has the pauses of a profile. It may also have those in the profile's archive."""
    mark = cover.archived
    not_archived = {
        (first, last) for first, last in lake_cover.pauses if not mark or not is_old_pause(last, mark.until)
    }
    return set(cover.pauses) == not_archived


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None


def expected_settings(
    user_id: str, stored: Item | None, lake: LakeUser | None, past: Callable[[], PastSettings]
) -> Profile:
    """Return the settings that a user must have, as a profile without anything that follows from the ledger.

    past: called only if the item and the lake's newest version do not have everything.
    """
    settings, unreadable = salvaged_settings(user_id, stored)
    if lake is None:
        return settings
    profile = readable_profile(stored) if stored else None
    match _newest_of(profile, settings, lake):
        case Newest.ITEM:
            return settings
        case Newest.DAMAGED_ITEM:
            settings = _fill_from_lake(settings, unreadable, lake)
        case Newest.IN_LAKE:
            settings = _with_lake_settings(settings, lake)
    last_chosen = settings.tz_changes[-1][1] if settings.tz_changes else None
    if profile is None or settings.zone != lake.zone or last_chosen != settings.timezone:
        settings = _with_past(settings, past())
    return settings


def _fill_from_lake(settings: Profile, unreadable: frozenset[str], lake: LakeUser) -> Profile:
    """Return the settings of a damaged item, with the lake's values in the place of unreadable ones.

    The item is newer than the lake's version, so what can be read of it counts.
    """
    cover, lake_cover = settings.cover, lake.cover
    return replace(
        settings,
        timezone=lake.chosen if "timezone_chosen" in unreadable else settings.timezone,
        tz_review=lake.review if "tz_review" in unreadable else settings.tz_review,
        cover=Cover(
            (),
            lake_cover.pauses if "pauses" in unreadable else cover.pauses,
            lake_cover.skipped if "skipped_dates" in unreadable else cover.skipped,
            opening=lake_cover.opening if "opening" in unreadable else cover.opening,
        ),
    )


def _with_lake_settings(settings: Profile, lake: LakeUser) -> Profile:
    """Return settings with all that the lake's newest version of the profile has."""
    cover = lake.cover
    if set(cover.pauses) == set(settings.cover.pauses):
        cover = replace(cover, pauses=settings.cover.pauses)  # their order says nothing
    assert lake.version is not None  # noqa: S101 (_newest_of has checked both)
    assert lake.updated_at is not None  # noqa: S101
    return replace(
        settings,
        version=lake.version,
        cover=cover,
        timezone=lake.chosen,
        tz_review=lake.review,
        updated_at=stamp(lake.updated_at),
    )


def _with_past(settings: Profile, past: PastSettings) -> Profile:
    """Add what the lake's events and older versions have, unless the item has something newer."""
    if past.observed_at >= settings.observed_at or not settings.observed_zone:
        settings = replace(settings, observed_zone=past.observed_zone, observed_at=past.observed_at)
    changes = settings.tz_changes if settings.tz_changes[-1:] > past.tz_changes[-1:] else past.tz_changes
    return replace(settings, tz_changes=changes[-TZ_CHANGES_KEPT_MAX:])


def archive_mark(stored: Item | None) -> ArchiveMark | None:
    """Return the mark that a stored profile has of its archive; None if it has none, or cannot be read."""
    profile = readable_profile(stored) if stored else None
    return profile.cover.archived if profile else None


def with_archived_pauses(
    settings: Profile, stored: Item | None, archive: Archive | None, lake_pauses: Callable[[], Spans]
) -> Profile:
    """Return settings with the pauses that the stored profile has put into its archive.

    The archive has them if it is the one that the profile names. Otherwise lake_pauses is called, because the
    lake has the pauses of all versions of the profile.
    """
    if stored is None or ARCHIVED not in stored:
        return settings
    mark = archive_mark(stored)
    if mark and archive and archive.digest == mark.digest:
        old_pauses = archive.pauses
    else:
        old_pauses = tuple(
            (first, last) for first, last in lake_pauses() if mark is None or is_old_pause(last, mark.until)
        )
    cover = settings.cover
    return replace(settings, cover=replace(cover, pauses=tuple(sorted({*old_pauses, *cover.pauses}))))


@dataclass(frozen=True, slots=True)
class SettingsHistory:
    """Reads past settings from the lake, newest files first."""

    objects: Objects

    def __call__(self, user_id: str) -> PastSettings:
        """Return a user's past settings."""
        return PastSettings(*self._observed(user_id), self._changes(user_id))

    def pauses(self, user_id: str) -> Spans:
        """Return all pauses of all versions of a user's profile: a pause is never withdrawn."""
        rows = (row for rows in self._rows_of(user_id, "streaks", ("user_id", "pauses")) for row in rows)
        return tuple(sorted({pause for row in rows for pause in pauses_of(row["pauses"])}))

    def _observed(self, user_id: str) -> tuple[str | None, str]:
        """Return the newest zone that an event named, and the event's id; (None, "") if none named a zone.

        An event's file is placed by the time in its id, so the newest file that names a zone has the newest.
        """
        for rows in self._rows_of(user_id, "events", OBSERVED_COLUMNS):
            zones = [(row["event_id"], row["timezone"]) for row in rows if row["timezone"] is not None]
            if zones:
                event_id, newest_zone = max(zones)
                return newest_zone, event_id
        return None, ""

    def _changes(self, user_id: str) -> Changes:
        """Return the changes of zone: at least as many as a profile keeps, or all since version 1."""
        versions: dict[int, tuple[str | None, Any]] = {}
        changes: Changes = ()
        for rows in self._rows_of(user_id, "streaks", CHOSEN_COLUMNS):
            versions |= {row["version"]: (row["timezone_chosen"], row["updated_at"]) for row in rows}
            chosen = [(name, at) for _, (name, at) in sorted(versions.items()) if name is not None]
            changes = changes_of(chosen)
            # The time of the oldest change is not sure: an older file may have an earlier version with the
            # same zone.
            if FIRST_VERSION in versions or len(changes) > TZ_CHANGES_KEPT_MAX:
                break
        return changes

    def _rows_of(self, user_id: str, entity: str, names: tuple[str, ...]) -> Iterator[list[dict[str, Any]]]:
        """Yield the user's rows in each of an entity's files that has any, newest file first."""
        files = reversed(curated_files(self.objects, entity))
        for _, table in tables(self.objects, entity, files, names, READERS):
            rows = table.filter(pc.equal(table["user_id"], pa.scalar(user_id)))
            if rows.num_rows:
                yield rows.to_pylist()


def changes_of(versions: list[tuple[str, datetime]]) -> Changes:
    """Return changes of zone as (when, zone), from successive versions: (zone chosen, when written)."""
    changes: list[tuple[str, str]] = []
    for chosen, updated_at in versions:
        if not changes or changes[-1][1] != chosen:
            changes.append((stamp(updated_at.replace(tzinfo=UTC)), chosen))
    return tuple(changes)
