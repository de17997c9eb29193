"""Settings of a profile that the ledger does not have (zones, pauses, skipped dates): which source is right.

- The stored item, if it is newer than the newest version in the lake.
- The lake, if both have the same version (7, say): this system never changes an item without a new version.
- The lake's events and older versions, for what the newest version in the lake does not hold.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from adapters.engagement.account_items import profile_attributes, profile_from
from adapters.platform.items import Item, decode_item, encode_item
from analytics.recompute.profile_texts import dates_of, opening_of, pauses_of
from analytics.recompute.recompute import LakeUser
from rules.days import stamp, zone
from rules.engagement.account import TZ_CHANGES_KEPT_MAX
from rules.engagement.account_state import Profile
from rules.engagement.archive import is_old_pause
from rules.engagement.streak import Cover

UNREADABLE = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)
BLANK = {"version": 0, "total_bestie_points": 0, "balance": 0, "timezone": "UTC", "streak_updated_at": ""}
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


@dataclass(frozen=True, slots=True)
class PastSettings:
    """What the lake's events and older versions tell: the newest zone, its event's id, changes of zone."""

    observed_zone: str | None = None
    observed_at: str = ""
    tz_changes: Changes = ()


def readable_profile(stored: Item) -> Profile | None:
    """Return the profile that an item holds. None if it cannot be read, or contradicts itself."""
    try:
        profile = profile_from(decode_item(stored))
        return profile if _is_consistent(profile) else None
    except UNREADABLE:
        return None


def _is_consistent(profile: Profile) -> bool:
    """Whether we can have written it: a chosen zone comes from a change, an observed one from an event."""
    chosen = profile.tz_changes[-1][1] if profile.tz_changes else None
    datetime.fromisoformat(profile.updated_at)
    zone(profile.zone)
    streak, head = profile.streak, profile.head
    numbers = [profile.version, profile.total_points, profile.expiry.settled_points, profile.backfilled]
    numbers += [streak.length, streak.longest, streak.active_days] if streak else []
    numbers += [head.seq, head.balance] if head else []
    texts = (profile.observed_at, profile.applied_through, head.created_at if head else "")
    return (
        chosen == profile.timezone
        and all(type(each) is int for each in numbers)
        and bool(profile.observed_zone) == bool(profile.observed_at)
        and all(isinstance(each, str) for each in texts)
    )


def salvaged_settings(user_id: str, stored: Item | None) -> tuple[Profile, frozenset[str]]:
    """Return the settings of an item that can be read, one by one, and the names of those that cannot."""
    good: dict[str, Any] = {}
    bad = set()
    for name in KEPT:
        if stored is None or name not in stored:
            continue
        alone = {name: stored[name]}
        try:
            one = profile_from({"user_id": user_id, **BLANK, **decode_item(alone)})
            zone(one.zone)
            if encode_item({name: profile_attributes(one, 1)[name]}) != alone or not _is_well_typed(one):
                raise ValueError(name)
        except UNREADABLE:
            bad.add(name)
        else:
            good |= decode_item(alone)
    return profile_from({"user_id": user_id, **BLANK, **good}), frozenset(bad)


def _is_well_typed(profile: Profile) -> bool:
    if profile.updated_at != "":
        datetime.fromisoformat(profile.updated_at)
    numbers = (profile.version, profile.expiry.settled_points, profile.backfilled)
    return all(type(each) is int for each in numbers) and isinstance(profile.observed_at, str)


def is_newer(stored: Profile, lake: LakeUser | None) -> bool:
    """Whether a stored profile may be a version that has not arrived in the lake yet."""
    if lake is None or lake.version is None or lake.updated_at is None:
        return True
    if stored.version <= lake.version:
        return False
    return not _is_same(stored, lake)


def _is_same(stored: Profile, lake: LakeUser) -> bool:
    """Whether only the version differs. None of our writers writes a new version without a change."""
    return settings_agree(stored, lake) and (stored.head.created_at if stored.head else None) == lake.head


def settings_agree(stored: Profile, lake: LakeUser) -> bool:
    """Whether a stored profile has the settings of the lake's newest version."""
    cover = stored.cover
    return (
        (stored.timezone, stored.zone, stored.tz_review) == (lake.chosen, lake.zone, lake.review)
        and _pauses_agree(cover, lake)
        and cover.skipped == frozenset(dates_of(lake.skipped))
        and cover.opening == opening_of(lake.opening)
        and _moment(stored.updated_at) == lake.updated_at
    )


def _pauses_agree(cover: Cover, lake: LakeUser) -> bool:
    """Whether the lake has the pauses of a profile; those that are put away may be among them."""
    mark = cover.archived
    told = {each for each in pauses_of(lake.pauses) if not mark or not is_old_pause(each[1], mark.until)}
    return set(cover.pauses) == told


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None


def expected_settings(
    user_id: str, stored: Item | None, lake: LakeUser | None, past: Callable[[], PastSettings]
) -> Profile:
    """Return the settings that a user must have, as a profile that has nothing of the ledger in it.

    past: is called only if the item and the lake's newest version do not tell everything.
    """
    found, bad = salvaged_settings(user_id, stored)
    whole = readable_profile(stored) if stored else None
    if lake is None or lake.version is None or lake.updated_at is None:
        return found
    if whole and is_newer(whole, lake):
        return found
    shows_newer = found.version > lake.version and _moment(found.updated_at) not in (None, lake.updated_at)
    found = _fill_from_lake(found, bad, lake) if shows_newer else _with_lake_settings(found, lake)
    last_change = found.tz_changes[-1][1] if found.tz_changes else None
    if whole is None or found.zone != lake.zone or last_change != found.timezone:
        found = _with_past(found, past())
    return found


def _fill_from_lake(found: Profile, bad: frozenset[str], lake: LakeUser) -> Profile:
    """Fill in from the lake what a damaged item lacks that is newer than the lake's version."""
    cover = found.cover
    return replace(
        found,
        timezone=lake.chosen if "timezone_chosen" in bad else found.timezone,
        tz_review=lake.review if "tz_review" in bad else found.tz_review,
        cover=Cover(
            (),
            pauses_of(lake.pauses) if "pauses" in bad else cover.pauses,
            frozenset(dates_of(lake.skipped)) if "skipped_dates" in bad else cover.skipped,
            opening=opening_of(lake.opening) if "opening" in bad else cover.opening,
        ),
    )


def _with_lake_settings(found: Profile, lake: LakeUser) -> Profile:
    pauses = pauses_of(lake.pauses)
    if set(pauses) == set(found.cover.pauses):
        pauses = found.cover.pauses  # their order says nothing
    cover = Cover((), pauses, frozenset(dates_of(lake.skipped)), opening=opening_of(lake.opening))
    assert lake.version is not None  # noqa: S101 (asked before)
    assert lake.updated_at is not None  # noqa: S101
    return replace(
        found,
        version=lake.version,
        cover=cover,
        timezone=lake.chosen,
        tz_review=lake.review,
        updated_at=stamp(lake.updated_at),
    )


def _with_past(found: Profile, past: PastSettings) -> Profile:
    """Add what the lake's events and older versions tell, unless the item knows something newer."""
    if past.observed_at >= found.observed_at or not found.observed_zone:
        found = replace(found, observed_zone=past.observed_zone, observed_at=past.observed_at)
    changes = found.tz_changes if found.tz_changes[-1:] > past.tz_changes[-1:] else past.tz_changes
    return replace(found, tz_changes=changes[-TZ_CHANGES_KEPT_MAX:])
