"""Compares one user's profile and days with the user's own journal, and repairs them.

The items are read before the journal. So the journal has all that the items can count. If the items are right
as of an earlier entry, the account is only behind: a writer is about to finish it, or has died.
rules/engagement/reconciliation.py decides what to do after each look.

A *difference* is one of an item, and can be repaired. A *disagreement* is a sentence that speaks against the
journal: the ledger breaks rule 6, or root, lake or book say otherwise. A journal with disagreements
may be in *doubt*: then nothing is repaired.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from adapters.engagement.account_items import profile_item
from adapters.engagement.account_store import AccountContended, AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.projections import Projections, RepairOvertaken
from adapters.platform.aws import pauses
from analytics.proof import NO_CHECK, PreviousTree
from analytics.recompute.lake_users import LakeUser
from analytics.reconcile.differences import Difference
from analytics.reconcile.journals import UserView, day_item, figures_of, journal_of, weeks_unlike_book
from analytics.reconcile.stored_profiles import kept_of, readable_profile
from analytics.reconcile.user_goals import GoalRows
from rules.book.book import Books
from rules.days import stamp
from rules.engagement.reconciliation import (
    Doubt,
    LakeFigures,
    Look,
    Step,
    days_of,
    disagreements,
    doubt_of,
    next_step,
)
from rules.engagement.review import LEDGER_DOUBT, put_under_review

LOOKS_MAX = 6  # at a user whom others keep changing
PAUSE_SECONDS = 0.05  # before a second look, then more
EVIDENCE_MAX = 200  # characters
# In these doubts the ledger itself is not to be trusted. In the others only the lake lacks entries.
LEDGER_DOUBTS = (Doubt.CONTRADICTED, Doubt.UNPROVEN)
# The attributes that a review changes.
REVIEW = ("version", "streak_updated_at", "tz_review", "review_state", "review_since", "review_evidence")


@dataclass(slots=True)
class Verdict:
    """The result of the looks at a user, and of what was done about it."""

    differences: list[Difference] = field(default_factory=list)  # of items that were, or are, wrong
    disagreements: list[str] = field(default_factory=list)  # what speaks against the journal, in words
    doubt: Doubt = Doubt.NONE  # of the journal
    is_behind: bool = False  # a writer had not finished the account, or wrote it by earlier books
    is_settled: bool = False  # the reconciler has finished what that writer had begun
    is_repaired: bool = False  # items were wrong, and the reconciler or another writer has made them right


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Compares accounts with their journals, repairs them, and puts those in doubt under review."""

    accounts: AccountStore
    projections: Projections
    cache: EngagementCache
    may_repair: bool  # False: nothing at all is written
    books: Callable[[], Books]  # as the lake has them
    previous_tree: PreviousTree | None = None  # knows the last root, and collects the heads of sound ledgers
    goal_rows: GoalRows | None = None  # folds sound ledgers into rows of goals

    def examine(self, user_id: str, lake: LakeUser | None, now: datetime) -> Verdict:
        """Compare, settle and repair one user. lake: what the lake has of the user.

        Raises AccountContended if others keep changing the account.
        """
        verdict = Verdict()
        bad_looks = 1  # how many looks, with the present one, may have seen a difference or a doubt
        for _ in pauses(LOOKS_MAX, base_seconds=PAUSE_SECONDS):
            view = self._read(user_id, lake)
            look, differences = self._look(view, lake, verdict, now)
            is_sound = verdict.doubt not in LEDGER_DOUBTS
            if differences and is_sound and view.is_right_by_earlier_books(now):
                verdict.is_behind = True
                if not self.may_repair:
                    return verdict
                verdict.is_settled |= self._try_repair(view, now)
                continue  # this look does not count: an account that is only behind is not wrong
            step = next_step(look, bad_looks, self.may_repair)
            if step is Step.SETTLE:
                verdict.is_behind = True
                if not self.may_repair:
                    return verdict
                self.accounts.finish_pending(user_id, now)
                verdict.is_settled = True
                continue  # this look does not count, either
            if step is Step.DONE:
                verdict.is_repaired = self.may_repair and bool(verdict.differences)
                return verdict
            bad_looks += 1
            if step is Step.LOOK_AGAIN:
                continue  # the first look may have met a writer at work
            # The first list is reported: a later look may see no more than what a failed repair has left.
            verdict.differences = verdict.differences or differences
            if step is Step.TELL:
                return verdict
            if self._try_repair(view, now):
                verdict.is_repaired = True
                return verdict
        raise AccountContended(user_id)

    def _look(
        self, view: UserView, lake: LakeUser | None, verdict: Verdict, now: datetime
    ) -> tuple[Look, list[Difference]]:
        """Compare a user's items with the journal, and the journal with lake and book.

        verdict: gets the doubt of the journal, and what speaks against it. Returns also how the items differ.
        """
        figures = figures_of(lake)
        verdict.disagreements = self._disagreements(view, figures, now)
        verdict.doubt = doubt_of(view.faults, view.entries, figures, now, view.check.faults)
        if verdict.doubt not in LEDGER_DOUBTS:
            self._feed_proof_and_goals(view)
        differences = [] if view.is_unreadable else view.item_differences(now)
        can_be_behind = bool(differences) and verdict.doubt is Doubt.NONE
        look = Look(bool(differences), can_be_behind and view.items_are_behind(now), verdict.doubt)
        return look, differences

    def put_under_review(self, user_id: str, reasons: Sequence[str], now: datetime) -> None:
        """Put an account under review, so that redemptions wait for an admin (rule 8). Nothing else changes.

        The review is in the profile alone: while a ledger is in doubt, nothing is appended to it. Raises
        AccountContended if others keep changing the profile.
        """
        reason = f"{LEDGER_DOUBT}: {'; '.join(reasons)}"[:EVIDENCE_MAX]
        for _ in pauses(LOOKS_MAX, base_seconds=PAUSE_SECONDS):
            stored = self.projections.profile(user_id)
            terms = self.accounts.daily_terms()
            before = (readable_profile(stored, terms) if stored else None) or kept_of(user_id, stored, terms)
            after = put_under_review(before, now, reason)
            if stored and after == before:
                return
            after = replace(after, version=before.version + 1, updated_at=stamp(now))
            new = profile_item(after, self.accounts.shards, now)
            if stored:
                new = stored | {name: new[name] for name in REVIEW}
            with suppress(RepairOvertaken):
                self.projections.put_profile(new, stored)
                self.cache.write_through([after], [])
                return
        raise AccountContended(user_id)

    def _read(self, user_id: str, lake: LakeUser | None) -> UserView:
        profile, days = self.projections.profile(user_id), self.projections.days(user_id)
        entries, faults = journal_of(self.accounts.ledger, user_id)
        check = self.previous_tree.check(user_id, entries) if self.previous_tree else NO_CHECK
        return UserView(
            user_id,
            profile,
            days,
            entries,
            kept_of(user_id, profile, self.accounts.daily_terms()),
            had_profile=lake is not None and lake.head is not None,
            shards=self.accounts.shards,
            faults=faults,
            check=check,
        )

    def _disagreements(self, view: UserView, figures: LakeFigures, now: datetime) -> list[str]:
        """Return what speaks against a journal, in words.

        Its points are compared with the book's only if nothing else speaks against it.
        """
        if view.is_unreadable:
            return list(view.faults)
        texts = [*view.faults, *view.check.faults, *disagreements(view.entries, figures, now)]
        return texts or weeks_unlike_book(view.entries, self.books)

    def _feed_proof_and_goals(self, view: UserView) -> None:
        if self.previous_tree:
            self.previous_tree.note_head(view.user_id, view.check.head)
        if self.goal_rows:
            self.goal_rows.fold(view.user_id, view.entries)

    def _try_repair(self, view: UserView, now: datetime) -> bool:
        """Repair the items; returns False if somebody has changed them since they were read."""
        try:
            self._repair(view, now)
        except RepairOvertaken:
            return False
        return True

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
        if profile and not view.has_right_profile(now):
            # A lost profile comes back newer than every version before, whose numbers nobody knows.
            version = profile.version + 1 if profile.version else int(now.timestamp())
            # Whether bonuses were settled is known to the stored profile alone.
            due = profile.expiry.bonuses_due or self.accounts.pay_bonuses()
            expiry = replace(profile.expiry, bonuses_due=due)
            profile = replace(profile, version=version, updated_at=stamp(now), expiry=expiry)
            new = profile_item(profile, view.shards, now)
            self.projections.put_profile(new, view.profile)
        self.cache.write_through([profile] if profile else [], changed_days)
