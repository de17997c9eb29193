"""Writes the notifications that follow from changes of users, leads and questions, and from time.

A holder is whoever notifications are about: a user, a lead or a question. Its state is what has been notified
so far. Each change is a step from one state to the next, which may add notifications.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from adapters.engagement.account_items import profile_from
from adapters.engagement.account_store import AccountContended
from adapters.engagement.goals import AchievementReader
from adapters.engagement.rewards import redemption_from
from adapters.leads.feature_store import feature_item_from
from adapters.leads.lead_event_store import LeadEventStore
from adapters.logs import Logger
from adapters.outgoing.endpoint_store import EndpointStore
from adapters.outgoing.notification_store import (
    EndpointShard,
    OutboxConflict,
    OutboxStore,
    OutboxWrite,
    endpoint_shard,
)
from adapters.platform.aws import pauses
from adapters.platform.items import decode_item
from adapters.platform.tables import get_all
from processors.batches import TRANSIENT, BatchResult, Record
from rules.book.rewards import Fulfilment, Redemption
from rules.days import stamp, unstamp
from rules.engagement.account_state import Profile
from rules.engagement.achievements import declared_achievements
from rules.leads.feature_items import FeatureItem
from rules.outgoing.achievement_notices import notices_of_achievements, notices_unasked, offered_achievements
from rules.outgoing.derivation import (
    ItemNoticeState,
    UserNoticeState,
    due_at,
    notices_of_lead,
    notices_of_profile,
    notices_of_question,
    notices_of_redemption,
)
from rules.outgoing.notices import (
    Notice,
    NoticeType,
    Notification,
    is_user,
    lead_holder,
    number_notices,
    question_holder,
)
from rules.questions.questions import Question, from_item

Change = Profile | Redemption | FeatureItem | Question
Step = Callable[[Any], tuple[list[Notice], Any]]  # from a state to what it adds, and the next state
ATTEMPTS_MAX = 5

logger = Logger(service="notifications")


@dataclass(frozen=True, slots=True)
class NoticeSteps:
    """Makes steps of changes; some of them need a look elsewhere."""

    achievements: AchievementReader | None = None  # None where nobody is notified of achievements
    leads: LeadEventStore | None = None  # None where nobody is notified of leads

    def of(self, changes: Sequence[Change], now: datetime, *, looks: bool) -> list[Step]:
        """Return what a holder's changes add, in order. looks: whether anybody wants achievements."""
        steps = [self._of(change, now) for change in changes]
        profiles = [change for change in changes if isinstance(change, Profile)]
        if profiles:
            steps.append(
                partial(self._achievement_notices, profile=profiles[-1], now=now)
                if looks
                else notices_unasked
            )
        return steps

    def _of(self, change: Change, now: datetime) -> Step:
        if isinstance(change, Profile):
            return partial(_profile_notices, profile=change)
        if isinstance(change, Redemption):
            return partial(notices_of_redemption, redemption=change)
        if isinstance(change, Question):
            return partial(notices_of_question, question=change)
        return partial(self._lead_notices, item=change, at=stamp(now))

    def _lead_notices(
        self, state: ItemNoticeState, item: FeatureItem, at: str
    ) -> tuple[list[Notice], ItemNoticeState]:
        """Return the notices of a lead; none of one without any event, which was erased."""
        lead = item.lead_organization_id
        own = state.shown.get("organization_id") or (self.leads and self.leads.organization_of(lead))
        return notices_of_lead(state, item, own, at) if own else ([], state)

    def _achievement_notices(
        self, state: UserNoticeState, profile: Profile, now: datetime
    ) -> tuple[list[Notice], UserNoticeState]:
        """Look at the achievements of a profile. One that is behind the ledger is changed again soon.

        Nobody goes by an older book than the last look: what it lacks would be withdrawn, and earned again.
        """
        if self.achievements is None or profile.version != state.version:
            return [], state
        book_store = self.achievements.streaks.book_store
        books = book_store.books()
        if books.newest.number < state.book:
            books = book_store.look()
        at = max(now, unstamp(state.looked_at)) if state.looked_at else now
        declared, achieved = declared_achievements(books, at), dict[str, str]()
        if declared:
            try:
                reading = self.achievements.read(profile, declared, at, is_strong=True)
            except AccountContended:
                logger.exception("achievements not read")
                return [], state
            if not reading.is_complete and (profile.head or reading.history.head):
                return [], state
            achieved = dict(reading.achieved)
        notices, later = notices_of_achievements(state, offered_achievements(declared, books, at), achieved)
        if later == state:
            return notices, state
        return notices, replace(later, book=books.newest.number, looked_at=stamp(at))


NO_LOOKUPS = NoticeSteps()


@dataclass(slots=True)
class NotificationBatch(BatchResult):
    """What became of a batch. counts: changes (that were looked at)."""

    shares: set[EndpointShard] = field(default_factory=set)  # in which something waits


@dataclass(frozen=True, slots=True)
class NotificationWriter:
    """Writes notifications into the outboxes of those who want them."""

    dynamodb: Any
    profiles: str
    store: OutboxStore
    endpoints: EndpointStore
    steps: NoticeSteps = NO_LOOKUPS

    def write(self, records: Iterable[Record], now: datetime) -> NotificationBatch:
        """Write the notifications of records, holder by holder. A holder's records come again together."""
        outcome = NotificationBatch()
        by_holder: dict[str, list[tuple[Record, Change]]] = {}
        for record, (holder, change) in outcome.read(records if self.endpoints.known() else (), read_change):
            if self._is_asked_for(change):
                by_holder.setdefault(holder, []).append((record, change))

        def write(holder: str, pairs: Sequence[tuple[Record, Change]]) -> None:
            looks = self._may_want(NoticeType.ACHIEVEMENT_EARNED)
            steps = self.steps.of([change for _, change in pairs], now, looks=looks)
            outcome.shares |= self.write_steps(holder, steps, now)
            outcome.counts["changes"] += len(pairs)

        for holder, pairs in by_holder.items():
            outcome.attempt(pairs, partial(write, holder), logger, (*TRANSIENT, OutboxConflict))
        return outcome

    def _is_asked_for(self, change: Change) -> bool:
        """Whether anybody may want it. Users are always followed, so that their notifications add up."""
        if isinstance(change, FeatureItem):
            return self._may_want(NoticeType.LEAD_UPDATED)
        return not isinstance(change, Question) or self._may_want(NoticeType.QUESTION_CLOSED)

    def _may_want(self, kind: NoticeType) -> bool:
        return any(each.may_want(kind) for each in self.endpoints.known())

    def write_steps(self, holder: str, steps: Sequence[Step], now: datetime) -> set[EndpointShard]:
        """Write what steps lead to, in one transaction; returns where something waits then.

        Raises OutboxConflict if others write about the holder all the time, and what DynamoDB raises.
        """
        for attempt in pauses(ATTEMPTS_MAX):
            before, revision = self.store.get(holder)
            state, new = before, list[Notification]()
            for step in steps:
                notices, later = step(state)
                new += number_notices(holder, state.number, later.as_of, notices)
                state = later
            if state == before:
                return set()
            wanting = [e.endpoint_id for e in self.endpoints.known() if any(e.wants(n.notice) for n in new)]
            if not (wanting or is_user(holder)):
                return set()
            due = due_at(state) if isinstance(state, UserNoticeState) else None
            try:
                self.store.put(holder, OutboxWrite(state, revision, due, new, wanting), now)
                return {endpoint_shard(each, holder) for each in wanting}
            except OutboxConflict:
                if attempt == ATTEMPTS_MAX - 1:
                    raise
        raise OutboxConflict(holder)

    def sweep(self, now: datetime, is_over: Callable[[], bool]) -> set[EndpointShard]:
        """Notify of what time alone has changed. A user whose newest change has not come yet waits for it."""
        shares: set[EndpointShard] = set()
        for user in self.store.due(now) if self.endpoints.known() else ():
            if is_over():
                break
            items = get_all(self.dynamodb, self.profiles, [{"user_id": user}])
            if not items:  # erased: the index may still name who is gone
                continue
            try:
                at_rest = partial(_timed_notices, profile=profile_from(decode_item(items[0])), at=now)
                shares |= self.write_steps(user, [at_rest], now)
            except OutboxConflict:
                continue
        return shares


def read_change(record: Record) -> tuple[str, Change] | None:
    """Return the holder of a record and what has changed; None: nothing that gives notifications.

    The name of an item's partition key says which table it is of. Raises KeyError, TypeError, ValueError and
    AttributeError for what cannot be read.
    """
    image = record["dynamodb"].get("NewImage")
    if not image:
        return None
    if "lead_organization_id" in image:
        item = feature_item_from(image)
        return lead_holder(item.lead_organization_id), item
    if "question_id" in image:
        question = from_item(decode_item(image))
        return question_holder(question.question_id), question
    if "holder" not in image:
        profile = profile_from(decode_item(image))
        return profile.user_id, profile
    if record["eventName"] != "INSERT" or "fulfilment" not in image:
        return None  # a stock, or a redemption that is on its way
    redemption = redemption_from(image)
    is_new = redemption.fulfilment is Fulfilment.REQUESTED
    return (redemption.user_id, redemption) if is_new else None


def _profile_notices(state: UserNoticeState, profile: Profile) -> tuple[list[Notice], UserNoticeState]:
    if profile.version <= state.version:
        return [], state
    return notices_of_profile(state, profile, unstamp(profile.updated_at))


def _timed_notices(
    state: UserNoticeState, profile: Profile, at: datetime
) -> tuple[list[Notice], UserNoticeState]:
    return notices_of_profile(state, profile, at) if profile.version == state.version else ([], state)
