"""Compares one user's profile and days with the user's own journal, and repairs them.

The items are read before the journal. So the journal has all that the items can count. If the items are right
as of an earlier entry, the account is only behind: a writer is about to finish it, or has died.
rules/engagement/reconciliation.py decides what to do after each look.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from adapters.engagement.account_items import ARCHIVE, lapsed_attributes, profile_attributes
from adapters.engagement.account_store import AccountContended, AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.projections import Projections, RepairOvertaken
from adapters.platform.aws import pauses
from adapters.platform.items import Item, decode_item, encode_item
from analytics.proof import PreviousTree
from analytics.recompute.lake_users import LakeUser
from analytics.reconcile.differences import Difference, differences
from analytics.reconcile.journals import UserView, day_item, figures_of, journal_of, weeks_unlike_book
from analytics.reconcile.profile_settings import (
    ARCHIVED,
    PastSettings,
    archive_mark,
    expected_settings,
    readable_profile,
    with_archived_pauses,
)
from analytics.reconcile.user_goals import GoalRows
from rules.book.book import Books
from rules.days import stamp
from rules.engagement.account_state import Profile
from rules.engagement.archive import Spans, archive_streak
from rules.engagement.reconciliation import (
    WRONG_STATE,
    Doubt,
    LakeFigures,
    Look,
    ProjectionState,
    Step,
    days_of,
    disagreements,
    doubt_of,
    has_lapsed,
    is_behind,
    next_step,
)
from rules.engagement.review import put_under_review

LOOKS_MAX = 6  # at a user whom others keep changing
PAUSE_SECONDS = 0.05  # before a second look, then more
PROFILES, DAYS = "UserStreaks", "DailyActivity"
EVIDENCE_MAX = 200  # characters
# The attributes that a review changes.
REVIEW = ("version", "streak_updated_at", "tz_review", "review_state", "review_since", "review_evidence")


@dataclass(slots=True)
class Verdict:
    """What the looks at a user showed, and what was done about it."""

    differences: list[Difference] = field(default_factory=list)  # of items that were, or are, wrong
    disagreements: list[str] = field(default_factory=list)  # what speaks against the journal, in words
    doubt: Doubt = Doubt.NONE  # of the journal
    is_behind: bool = False  # a writer had not finished the account
    is_settled: bool = False  # the reconciler has finished it
    is_repaired: bool = False  # items were wrong, and the reconciler or another writer has made them right


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Compares accounts with their journals, repairs them, and freezes those whose journal is in doubt."""

    accounts: AccountStore
    projections: Projections
    cache: EngagementCache
    past: Callable[[str], PastSettings]  # a user's settings, as the lake has them
    old_pauses: Callable[[str], Spans]  # all pauses that a user has had, as the lake has them
    repair: bool  # False: nothing at all is written
    books: Callable[[], Books]  # as the lake has them
    witness: PreviousTree | None = None  # knows the last root, and takes the heads of sound journals
    goals: GoalRows | None = None  # folds sound journals into rows of goals

    def examine(self, user_id: str, lake: LakeUser | None, now: datetime) -> Verdict:
        """Compare, settle and repair one user. lake: what the lake has of the user.

        Raises AccountContended if others keep changing the account.
        """
        verdict, times = Verdict(), 1  # times: that something was wrong, with the present look
        for _ in pauses(LOOKS_MAX, base_seconds=PAUSE_SECONDS):
            view, figures = self._read(user_id, lake), figures_of(lake)
            verdict.disagreements = self._disagreements(view, figures, now)
            verdict.doubt = doubt_of(view.faults, view.entries, figures, now, view.unproven)
            if verdict.doubt not in (Doubt.CONTRADICTED, Doubt.UNPROVEN):
                self._collect(view)
            wrong = [] if view.is_unreadable else self._differences(view, now)
            look = self._look(view, verdict.doubt, bool(wrong), now)
            step = next_step(look, times, self.repair)
            if step is Step.SETTLE:
                verdict.is_behind = True
                if not self.repair:
                    return verdict
                self.accounts.finish_pending(user_id, now)
                verdict.is_settled = True
                continue  # it does not count: an account that is only behind is not wrong
            if step is Step.DONE:
                verdict.is_repaired = self.repair and bool(verdict.differences)
                return verdict
            times += 1
            if step is not Step.LOOK_AGAIN:  # a first look may have met a writer at work
                verdict.differences = verdict.differences or wrong
            if step is Step.TELL or (step is Step.REPAIR and self._is_repaired(view, verdict, now)):
                return verdict
        raise AccountContended(user_id)

    def freeze(self, user_id: str, lake: LakeUser | None, reasons: Sequence[str], now: datetime) -> None:
        """Put an account under review, so that redemptions wait for an admin (rule 8). Nothing else changes.

        Raises AccountContended if others keep changing the profile.
        """
        reason = f"ledger and lake disagree: {'; '.join(reasons)}"[:EVIDENCE_MAX]
        for _ in pauses(LOOKS_MAX, base_seconds=PAUSE_SECONDS):
            stored = self.projections.profile(user_id)
            before = (stored and readable_profile(stored)) or expected_settings(
                user_id, stored, lake, lambda: self.past(user_id)
            )
            after = put_under_review(before, now, reason)
            if stored and after == before:
                return
            after = replace(after, version=before.version + 1, updated_at=stamp(now))
            new = encode_item(profile_attributes(after, self.accounts.shards))
            if stored:
                new = stored | {name: new[name] for name in REVIEW}
            with suppress(RepairOvertaken):
                self.projections.put_profile(new, stored)
                self.cache.write_through([after], [])
                return
        raise AccountContended(user_id)

    def _collect(self, view: UserView) -> None:
        """Give a sound journal to those that collect something of it."""
        if self.witness:
            self.witness.note_head(view.user_id, view.entries)
        if self.goals:
            self.goals.fold(view.user_id, view.entries, view.settings.cover)

    def _disagreements(self, view: UserView, figures: LakeFigures, now: datetime) -> list[str]:
        """Return what speaks against a journal, in words. Other points than the book's come last."""
        if view.is_unreadable:
            return list(view.faults)
        texts = [*view.faults, *view.unproven, *disagreements(view.entries, figures, now)]
        return texts or weeks_unlike_book(view, self.books)

    def _look(self, view: UserView, doubt: Doubt, is_wrong: bool, now: datetime) -> Look:
        """Return what a look showed. is_wrong: whether any item differs from the whole journal."""
        is_behind_only = is_wrong and doubt is Doubt.NONE and self._is_behind(view, now)
        return Look(is_wrong, is_behind_only, doubt)

    def _read(self, user_id: str, lake: LakeUser | None) -> UserView:
        profile, days = self.projections.profile(user_id), self.projections.days(user_id)
        entries, faults = journal_of(self.accounts.ledger, user_id)
        archive = self.accounts.archives.get(user_id) if profile and ARCHIVED in profile else None
        settings = expected_settings(user_id, profile, lake, lambda: self.past(user_id))
        lake_has_profile = lake is not None and lake.version is not None
        return UserView(
            user_id,
            profile,
            days,
            entries,
            with_archived_pauses(settings, profile, archive, lambda: self.old_pauses(user_id)),
            needs_profile=bool(profile or entries or lake_has_profile),
            archive=archive,
            faults=faults,
            unproven=self.witness.faults(user_id, entries) if self.witness else (),
        )

    def _differences(self, view: UserView, now: datetime) -> list[Difference]:
        """Return in what the stored items differ from what the whole journal says."""
        expected = self._comparable_item(view.expected_profile(view.head), view.profile, now)
        wrong = differences(view.user_id, PROFILES, "", view.profile, expected)
        wrong += self._archive_differences(view)
        expected_days = days_of(view.entries)
        for when in sorted(expected_days.keys() | view.days.keys()):
            expected_day = day_item(expected_days.get(when))
            wrong += differences(view.user_id, DAYS, when, view.days.get(when), expected_day)
        return wrong

    @staticmethod
    def _archive_differences(view: UserView) -> list[Difference]:
        """Return one difference if the archive is not the one that the stored profile names, or none."""
        mark = archive_mark(view.profile)
        digest = view.archive.digest if view.archive else None
        if mark is None or mark.digest == digest:
            return []
        return [Difference(view.user_id, DAYS, ARCHIVE, "packed", digest, mark.digest)]

    def _comparable_item(self, profile: Profile | None, stored: Item | None, now: datetime) -> Item | None:
        """Return the item of a profile as it must be stored. A streak that has lapsed may be lowered already.

        Lowered: it shows 0, and the item has `run_length` in its place, so the leaderboard's index lacks it.
        """
        if profile is None:
            return None
        attributes = profile_attributes(_as_archived(profile, stored), self.accounts.shards)
        may_be_low = (
            stored is not None and "run_length" in stored and has_lapsed(attributes.get("lapses_at"), now)
        )
        return encode_item(lapsed_attributes(attributes) if may_be_low else attributes)

    def _new_item(self, profile: Profile, stored: Item | None, now: datetime) -> Item:
        """Return the item to store: lowered if the streak has lapsed and the stored item is low or missing.

        A stored item that still shows a lapsed streak is left as high as it is: the sweep of lapsed streaks
        lowers it.
        """
        attributes = profile_attributes(profile, self.accounts.shards)
        was_low = stored is None or "run_length" in stored or "current_streak" not in stored
        return encode_item(
            lapsed_attributes(attributes)
            if was_low and has_lapsed(attributes.get("lapses_at"), now)
            else attributes
        )

    def _is_behind(self, view: UserView, now: datetime) -> bool:
        """Whether all items are right as of earlier entries of the journal."""
        profile = self._counted_profile(view.profile, view, now) if view.profile else None
        return is_behind(view.entries, profile, view.counted_days(), bool(view.settings.version))

    def _counted_profile(self, stored: Item, view: UserView, now: datetime) -> ProjectionState:
        """Return up to which entry a stored profile counts, and whether it is right as of that entry."""
        profile = readable_profile(stored)
        if profile is None:
            return WRONG_STATE
        place = profile.head.created_at if profile.head else ""
        is_right = self._comparable_item(view.expected_profile(place), stored, now) == stored
        return ProjectionState(place, is_right and not self._archive_differences(view))

    def _is_repaired(self, view: UserView, verdict: Verdict, now: datetime) -> bool:
        """Repair the items; returns False if somebody has changed them since they were read."""
        with suppress(RepairOvertaken):
            self._repair(view, now)
            verdict.is_repaired = True
        return verdict.is_repaired

    def _repair(self, view: UserView, now: datetime) -> None:
        """Store the items that the journal leads to in the place of others. Raises RepairOvertaken."""
        expected_days, changed_days = days_of(view.entries), []
        for when in sorted(expected_days.keys() | view.days.keys()):
            expected, stored = day_item(expected_days.get(when)), view.days.get(when)
            if expected and expected != stored:
                self.projections.put_day(expected, stored)
                changed_days.append(expected_days[when])
            elif stored and not expected:
                self.projections.delete_day(stored)
        profile = view.expected_profile(view.head)
        is_wrong = profile and self._comparable_item(profile, view.profile, now) != view.profile
        if profile and (is_wrong or self._archive_differences(view)):
            # The new profile has no archive. Its next writer puts away again what is settled.
            version = max(profile.version, _version(view.profile)) + 1
            profile = replace(profile, version=version, updated_at=stamp(now))
            self.projections.put_profile(self._new_item(profile, view.profile, now), view.profile)
        self.cache.write_through([profile] if profile else [], changed_days)


def _version(stored: Item | None) -> int:
    """Return the version of a stored profile; 0 if there is none, or it is no number."""
    version = decode_item(stored).get("version") if stored else 0
    return version if type(version) is int else 0


def _as_archived(profile: Profile, stored: Item | None) -> Profile:
    """Return a whole profile with as much in the archive as the stored one has, if that is possible."""
    mark = archive_mark(stored)
    if mark is None or profile.streak is None or mark.until >= profile.streak.last:
        return profile
    (streak, cover), _ = archive_streak(profile.streak, profile.cover, mark.until)
    return replace(profile, streak=streak, cover=cover)
