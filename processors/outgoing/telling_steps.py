"""What each change adds to what was told; some of it is looked up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from adapters.engagement.account_store import AccountContended
from adapters.engagement.goals import AchievementReader
from adapters.leads.lead_event_store import LeadEventStore
from adapters.logs import Logger
from processors.outgoing.hearing import Change
from rules.book.rewards import Redemption
from rules.days import stamp, unstamp
from rules.engagement.account_state import Profile
from rules.engagement.achievements import declared_achievements
from rules.leads.feature_items import FeatureItem
from rules.outgoing.achievement_notices import notices_of_achievements, notices_unasked, offered_achievements
from rules.outgoing.derivation import (
    ToldState,
    ToldThing,
    notices_of_lead,
    notices_of_profile,
    notices_of_question,
    notices_of_redemption,
)
from rules.outgoing.notices import Notice
from rules.questions.questions import Question

logger = Logger(service="telling")
Step = Callable[[Any], tuple[list[Notice], Any]]


@dataclass(frozen=True, slots=True)
class TellingSteps:
    """Makes steps of changes. achievements, leads: None where nobody is told of them."""

    achievements: AchievementReader | None = None
    leads: LeadEventStore | None = None

    def of(self, changes: Sequence[Change], now: datetime, *, looks: bool) -> list[Step]:
        """Return what a holder's changes add, in order. looks: whether anybody is told of achievements."""
        steps = [self._of(each, now) for each in changes]
        profiles = [each for each in changes if isinstance(each, Profile)]
        if profiles:
            steps.append(partial(self._achieved, profile=profiles[-1], now=now) if looks else notices_unasked)
        return steps

    def _of(self, change: Change, now: datetime) -> Step:
        if isinstance(change, Profile):
            return partial(_changed, profile=change)
        if isinstance(change, Redemption):
            return partial(notices_of_redemption, redemption=change)
        if isinstance(change, Question):
            return partial(notices_of_question, question=change)
        return partial(self._updated, item=change, at=stamp(now))

    def _updated(self, told: ToldThing, item: FeatureItem, at: str) -> tuple[list[Notice], ToldThing]:
        """A lead of which there is no event any more was erased: nobody is told of it."""
        lead = item.lead_organization_id
        own = told.shown.get("organization_id") or (self.leads and self.leads.organization_of(lead))
        return notices_of_lead(told, item, own, at) if own else ([], told)

    def _achieved(self, told: ToldState, profile: Profile, now: datetime) -> tuple[list[Notice], ToldState]:
        """Look at the achievements of a profile. One that is behind the ledger is changed again soon.

        Nobody goes by an older book than the last look: what it lacks would be withdrawn, and earned again.
        """
        if self.achievements is None or profile.version != told.version:
            return [], told
        book_store = self.achievements.streaks.book_store
        books = book_store.books()
        if books.newest.number < told.book:
            books = book_store.look()
        at = max(now, unstamp(told.looked_at)) if told.looked_at else now
        known, found = declared_achievements(books, at), dict[str, str]()
        if known:
            try:
                read = self.achievements.read(profile, known, at, is_strong=True)
            except AccountContended:
                logger.exception("achievements not read")
                return [], told
            if not read.is_settled and (profile.head or read.told.head):
                return [], told
            found = dict(read.found)
        notices, later = notices_of_achievements(told, offered_achievements(known, books, at), found)
        if later == told:
            return notices, told
        return notices, replace(later, book=books.newest.number, looked_at=stamp(at))


def _changed(told: ToldState, profile: Profile) -> tuple[list[Notice], ToldState]:
    if profile.version <= told.version:
        return [], told
    return notices_of_profile(told, profile, unstamp(profile.updated_at))
