"""Tells: what follows from changes of users, leads and questions, and from time."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from adapters.engagement.account_items import profile_from
from adapters.logs import Logger
from adapters.outgoing.endpoint_store import EndpointStore
from adapters.outgoing.notification_store import Share, Telling, ToldMeanwhile, ToldStore, share_of
from adapters.platform.aws import pauses
from adapters.platform.items import plain
from adapters.platform.tables import get_all
from processors.batches import TRANSIENT, BatchResult, Record
from processors.outgoing.hearing import Change, heard
from processors.outgoing.telling_steps import Step, TellingSteps
from rules.engagement.account_state import Profile
from rules.leads.feature_items import FeatureItem
from rules.outgoing.derivation import ToldState, due_at, notices_of_profile
from rules.outgoing.notices import Notice, NoticeType, Notification, is_user, number_notices
from rules.questions.questions import Question

logger = Logger(service="telling")
ATTEMPTS_MAX = 5
NOTHING_LOOKED_UP = TellingSteps()


@dataclass(slots=True)
class ToldBatch(BatchResult):
    """counts: told. shares: in which something waits."""

    shares: set[Share] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Teller:
    """Tells: writes what follows from a change, or from time."""

    dynamodb: Any
    profiles: str
    store: ToldStore
    endpoints: EndpointStore
    steps: TellingSteps = NOTHING_LOOKED_UP

    def hear(self, records: Iterable[Record], now: datetime) -> ToldBatch:
        """Tell of what records say, holder by holder. A holder's records come again together."""
        outcome = ToldBatch()
        by_holder: dict[str, list[tuple[Record, Change]]] = {}
        for record, (holder, change) in outcome.read(records if self.endpoints.known() else (), heard):
            if self._is_asked_for(change):
                by_holder.setdefault(holder, []).append((record, change))

        def tell(holder: str, pairs: Sequence[tuple[Record, Change]]) -> None:
            looks = self._may_want(NoticeType.ACHIEVEMENT_EARNED)
            steps = self.steps.of([change for _, change in pairs], now, looks=looks)
            outcome.shares |= self.tell(holder, steps, now)
            outcome.counts["told"] += len(pairs)

        for holder, pairs in by_holder.items():
            outcome.attempt(pairs, partial(tell, holder), logger, (*TRANSIENT, ToldMeanwhile))
        return outcome

    def _is_asked_for(self, change: Change) -> bool:
        """Whether anybody may be told of it. Users are always followed, so that what is told adds up."""
        if isinstance(change, FeatureItem):
            return self._may_want(NoticeType.LEAD_UPDATED)
        return not isinstance(change, Question) or self._may_want(NoticeType.QUESTION_CLOSED)

    def _may_want(self, kind: NoticeType) -> bool:
        return any(each.may_want(kind) for each in self.endpoints.known())

    def tell(self, holder: str, steps: Sequence[Step], now: datetime) -> set[Share]:
        """Write what steps lead to, in one transaction; returns where something waits then.

        Raises ToldMeanwhile if others tell of the holder all the time, and what DynamoDB raises.
        """
        for attempt in pauses(ATTEMPTS_MAX):
            before, revision = self.store.get(holder)
            told, found = before, list[Notification]()
            for step in steps:
                notices, later = step(told)
                found += number_notices(holder, told.number, later.as_of, notices)
                told = later
            if told == before:
                return set()
            wanting = [e.endpoint_id for e in self.endpoints.known() if any(e.wants(n.notice) for n in found)]
            if not (wanting or is_user(holder)):
                return set()
            due = due_at(told) if isinstance(told, ToldState) else None
            try:
                self.store.put(holder, Telling(told, revision, due, found, wanting), now)
                return {share_of(each, holder) for each in wanting}
            except ToldMeanwhile:
                if attempt == ATTEMPTS_MAX - 1:
                    raise
        raise ToldMeanwhile(holder)

    def sweep(self, now: datetime, is_over: Callable[[], bool]) -> set[Share]:
        """Tell of what time alone has changed. A user whose newest change has not come yet waits for it."""
        shares: set[Share] = set()
        for user in self.store.due(now) if self.endpoints.known() else ():
            if is_over():
                break
            found = get_all(self.dynamodb, self.profiles, [{"user_id": user}])
            if not found:  # erased: the index may still name who is gone
                continue
            try:
                at_rest = partial(_at_rest, profile=profile_from(plain(found[0])), at=now)
                shares |= self.tell(user, [at_rest], now)
            except ToldMeanwhile:
                continue
        return shares


def _at_rest(told: ToldState, profile: Profile, at: datetime) -> tuple[list[Notice], ToldState]:
    return notices_of_profile(told, profile, at) if profile.version == told.version else ([], told)
