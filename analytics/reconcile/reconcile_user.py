"""One user's projections against the user's own journal, and their repair (the exact phase).

Items are read before the journal, so the journal is never behind what is compared with it. An account
whose items are right as of an earlier entry is only behind: a writer is about to finish it, or died.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from adapters.engagement.account_items import day_attributes, day_from, lapsed_attributes, profile_attributes
from adapters.engagement.account_store import BEFORE_ALL, AccountContended, AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.projections import ProjectionChanged, Projections
from adapters.platform.aws import pauses
from adapters.platform.items import Item, item, plain
from analytics.recompute.lake_snapshot import LakeUser
from analytics.reconcile.differences import Difference, differences
from analytics.reconcile.profile_settings import UNREADABLE, PastSettings, believed_settings, readable_profile
from rules.days import stamp
from rules.engagement.account_state import Day, Profile
from rules.engagement.ledger import OPENED_AT, Entry, EntryKind
from rules.engagement.rebuild import chain_faults, days_of, entries_up_to, profile_of

LOOKS_MAX = 6
LOOKS_MIN = 2  # a difference counts when it is seen again, after a pause
PAUSE_SECONDS = 0.05
# An entry that is older and still not in the lake is lost; younger ones may be under way.
LAKE_LAG = timedelta(hours=2)
PROFILES, DAYS = "UserStreaks", "DailyActivity"


@dataclass(frozen=True, slots=True)
class View:
    """What was read of a user, and what must be there instead."""

    user_id: str
    profile: Item | None
    days: Mapping[str, Item]
    entries: Sequence[Entry]
    settings: Profile
    has_profile: bool

    def expected_profile(self, place: str) -> Profile | None:
        """Return the profile as of a place in the journal; None where there must be none."""
        if not self.has_profile:
            return None
        return profile_of(self.settings, entries_up_to(self.entries, place))


@dataclass(slots=True)
class Verdict:
    """What was found of a user, and what came of it."""

    differences: list[Difference] = field(default_factory=list)
    disagreements: list[str] = field(default_factory=list)
    is_behind: bool = False
    is_settled: bool = False
    is_repaired: bool = False


@dataclass(frozen=True, slots=True)
class Reconciler:
    """past: what the lake tells of a user's earlier settings. repair: False writes nothing at all."""

    accounts: AccountStore
    projections: Projections
    cache: EngagementCache
    shards: int
    past: Callable[[str], PastSettings]
    repair: bool

    def examine(self, user_id: str, lake: LakeUser | None, now: datetime) -> Verdict:
        """Compare, settle and repair one user. Raises adapters.engagement.account_store.AccountContended."""
        verdict = Verdict()
        seen = 0
        for _ in pauses(LOOKS_MAX, base_seconds=PAUSE_SECONDS):
            view, faults = self._read(user_id, lake)
            verdict.disagreements = faults or disagreements(view.entries, lake, now)
            found = self._differences(view, now)
            if not faults and found and self._is_behind(view, now):
                verdict.is_behind = True
                if not self.repair:
                    return verdict
                self.accounts.settle(user_id, now)
                verdict.is_settled = True
                continue
            if not found and not faults:
                verdict.is_repaired = self.repair and bool(verdict.differences)
                return verdict
            seen += 1
            if seen < LOOKS_MIN:
                continue
            verdict.differences = verdict.differences or found
            if faults or not self.repair or _is_lost(view, lake):
                return verdict
            with suppress(ProjectionChanged):
                self._repair(view, now)
                verdict.is_repaired = True
                return verdict
        raise AccountContended(user_id)

    def _read(self, user_id: str, lake: LakeUser | None) -> tuple[View, list[str]]:
        profile, days = self.projections.profile(user_id), self.projections.days(user_id)
        entries, _ = self.accounts.ledger.after(user_id, BEFORE_ALL)
        known = lake is not None and lake.version is not None
        settings = believed_settings(user_id, profile, lake, lambda: self.past(user_id))
        has_profile = bool(profile or entries or known)
        return View(user_id, profile, days, entries, settings, has_profile), chain_faults(entries)

    def _differences(self, view: View, now: datetime) -> list[Difference]:
        head = view.entries[-1].created_at if view.entries else ""
        expected = self._item(view.expected_profile(head), view.profile, now)
        found = differences(view.user_id, PROFILES, "", view.profile, expected)
        must = days_of(view.entries)
        for when in sorted(must.keys() | view.days.keys()):
            found += differences(view.user_id, DAYS, when, view.days.get(when), _day_item(must.get(when)))
        return found

    def _item(self, profile: Profile | None, stored: Item | None, now: datetime) -> Item | None:
        """Return a profile as it must be stored: a streak that has lapsed may be lowered already."""
        if profile is None:
            return None
        attributes = profile_attributes(profile, self.shards)
        may_be_low = stored is not None and "run_length" in stored and has_lapsed(attributes, now)
        return item(lapsed_attributes(attributes) if may_be_low else attributes)

    def _new_item(self, profile: Profile, stored: Item | None, now: datetime) -> Item:
        """Return a profile as it is to be stored: lowered if it has lapsed, unless it was not so far."""
        attributes = profile_attributes(profile, self.shards)
        was_low = stored is None or "run_length" in stored or "leaderboard_partition" not in stored
        return item(lapsed_attributes(attributes) if was_low and has_lapsed(attributes, now) else attributes)

    def _is_behind(self, view: View, now: datetime) -> bool:
        """Whether all items are right as of earlier entries, and later ones are what is missing."""
        profile = readable_profile(view.profile) if view.profile else None
        if view.profile and not profile:
            return False
        if view.profile is None and view.settings.version:
            return False  # The lake knows a profile: it was there, and is gone.
        place = profile.head.created_at if profile and profile.head else ""
        if profile and self._item(view.expected_profile(place), view.profile, now) != view.profile:
            return False
        floor, must = days_of(entries_up_to(view.entries, place)), days_of(view.entries)
        return all(_is_day_behind(view, when, floor.get(when)) for when in must.keys() | view.days.keys())

    def _repair(self, view: View, now: datetime) -> None:
        """Write what must be in the place of what was read; raises ProjectionChanged."""
        must, changed = days_of(view.entries), []
        for when in sorted(must.keys() | view.days.keys()):
            expected, stored = _day_item(must.get(when)), view.days.get(when)
            if expected and expected != stored:
                self.projections.put_day(expected, stored)
                changed.append(must[when])
            elif stored and not expected:
                self.projections.delete_day(stored)
        profile = view.expected_profile(view.entries[-1].created_at if view.entries else "")
        if profile and self._item(profile, view.profile, now) != view.profile:
            version = max(profile.version, _version(view.profile)) + 1
            profile = replace(profile, version=version, updated_at=now.isoformat())
            self.projections.put_profile(self._new_item(profile, view.profile, now), view.profile)
        self.cache.write_through([profile] if profile else [], changed)


def has_lapsed(attributes: Mapping[str, Any], now: datetime) -> bool:
    """Whether a profile's streak shows 0 by now; not so without a streak."""
    return "lapses_at" in attributes and attributes["lapses_at"] <= now.timestamp()


def _version(stored: Item | None) -> int:
    version = plain(stored).get("version") if stored else 0
    return version if type(version) is int else 0


def _day_item(day: Day | None) -> Item | None:
    return item(day_attributes(day)) if day else None


def _is_day_behind(view: View, when: str, floor: Day | None) -> bool:
    """Whether a day is right as of its own newest entry, which is not older than the profile's."""
    stored = view.days.get(when)
    if stored is None:
        return floor is None
    try:
        head = day_from(plain(stored)).ledger_head
        own = days_of(entries_up_to(view.entries, head)).get(when)
    except UNREADABLE:
        return False
    return _day_item(own) == stored and (floor is None or floor.ledger_head <= head)


def _is_lost(view: View, lake: LakeUser | None) -> bool:
    """Whether entries are gone from the journal itself: then it is no ground to repair on."""
    return (
        lake is not None
        and lake.head is not None
        and len(entries_up_to(view.entries, lake.head)) < lake.entries
    )


def disagreements(entries: Sequence[Entry], lake: LakeUser | None, now: datetime) -> list[str]:
    """Return where a sound journal and the lake's copy of it part."""
    settled = stamp(now - LAKE_LAG)
    head = lake.head if lake and lake.head else ""
    known, later = entries_up_to(entries, head), entries[len(entries_up_to(entries, head)) :]
    found = []
    held = lake.entries if lake else 0
    if lake and len(known) < held:
        found.append(f"the lake has {held - len(known)} entries that the table lacks")
    lost = max(0, sum(each.created_at < settled for each in known) - held)
    lost += sum(OPENED_AT < each.created_at < settled for each in later)
    if lost:
        found.append(f"the lake lacks {lost} entries")
    if lake and len(known) == held and held:
        points = sum(each.draft.points for each in known)
        earned = sum(each.draft.points for each in known if each.draft.kind is EntryKind.EARN)
        if (points, earned) != (lake.points, lake.total_points):
            found.append(
                f"points {points}, earned {earned}; in the lake {lake.points} and {lake.total_points}"
            )
        elif (known[-1].seq, known[-1].balance) != (lake.seq, lake.balance):
            found.append(f"the entry {head} differs in the lake")
    return found
