"""Profiles that have put something away (rules.engagement.archive), against what they must be."""

from collections.abc import Callable
from dataclasses import replace

from adapters.platform.items import Item
from analytics.reconcile.profile_settings import ARCHIVED, readable_profile
from rules.engagement.account_state import Profile
from rules.engagement.archive import Archive, Spans, is_old, put_away
from rules.engagement.streak import ArchiveMark


def mark_of(stored: Item | None) -> ArchiveMark | None:
    """Return what a stored profile says of its archive; None if it has none, or cannot be read."""
    profile = readable_profile(stored) if stored else None
    return profile.cover.archived if profile else None


def as_archived(profile: Profile, stored: Item | None) -> Profile:
    """Return a whole profile with as much put away as the stored one has, if that is possible."""
    mark = mark_of(stored)
    if mark is None or profile.streak is None or mark.until >= profile.streak.last:
        return profile
    (streak, cover), _ = put_away(profile.streak, profile.cover, mark.until)
    return replace(profile, streak=streak, cover=cover)


def with_old_pauses(
    settings: Profile, stored: Item | None, archive: Archive | None, lake: Callable[[], Spans]
) -> Profile:
    """Return settings with the pauses that the stored profile has put away.

    The archive tells them if it is the one that the profile names. Otherwise the lake is asked: the versions
    of the profile have had all of them.
    """
    if stored is None or ARCHIVED not in stored:
        return settings
    mark = mark_of(stored)
    if mark and archive and archive.digest == mark.digest:
        told = archive.pauses
    else:
        told = tuple(each for each in lake() if mark is None or is_old(each[1], mark.until))
    cover = settings.cover
    return replace(settings, cover=replace(cover, pauses=tuple(sorted({*told, *cover.pauses}))))
