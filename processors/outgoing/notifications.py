"""Makes notifications of changes of UserStreaks, Rewards, Friends and parts' tables, and of time (rule 18).

A profile's records arrive in order, maybe twice. The state of a user's notifications is stored. So the fold
of rules/outgoing/derivation.py needs no older image, and a record that is delivered twice is notified once.
Without an endpoint nothing is read or written.

A holder is the user, or the thing of a part, that notifications are about. Its state has all that was
notified so far. Each change is a step from one state to the next, which may add notifications.

Example: a user's profile gets a longer streak (the change). Its step compares the profile with the state,
which has the streak that was last notified. It returns a notice and the new state.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from adapters import clock
from adapters.book_store import BookStore
from adapters.bootstrap import ClientOf, bootstrap
from adapters.engagement.account_items import LEAGUE, profile_from, with_daily_terms
from adapters.engagement.account_store import AccountContended, AccountStore
from adapters.engagement.achievements import AchievementReader, AchievementStore, GoalStore, StreakReader
from adapters.engagement.friend_store import tie_from
from adapters.engagement.leagues import membership_of
from adapters.engagement.ledger_store import LedgerStore
from adapters.engagement.period_boards import FinalResult, StandingStore
from adapters.engagement.rewards import redemption_from
from adapters.logs import Logger
from adapters.outgoing.endpoint_store import EndpointStore
from adapters.outgoing.lane_store import LaneStore
from adapters.outgoing.outbox_store import (
    LANE_SHARDS,
    DeliveryInvoker,
    EndpointShare,
    OutboxConflict,
    OutboxStore,
    OutboxWrite,
    endpoint_share,
)
from adapters.platform.aws import pauses
from adapters.platform.items import decode_item
from adapters.platform.queues import Deadline
from adapters.platform.tables import chunks, get_all
from adapters.privacy.tombstones import ErasureCheck, names_erased, tombstones_of
from adapters.settings import with_settings
from processors.batches import TRANSIENT, BatchResult, ConsumerSettings, Record, stream_consumer
from processors.outgoing.part_changes import PartChanges, ReadChange
from rules.book.board_rules import BoardRule
from rules.book.daily import NO_REPAIRS, RepairRules
from rules.book.levels import Level
from rules.book.rewards import Fulfilment, Redemption
from rules.days import stamp, unstamp
from rules.engagement.account_state import Profile
from rules.engagement.goals import DeclaredAchievement, declared_achievements
from rules.engagement.periods import boards_in
from rules.lake.engagement_entities import event_version
from rules.outgoing.derivation import (
    ItemNoticeState,
    LeagueResult,
    ProfileView,
    ThingChange,
    TieChange,
    UserNoticeState,
    due_at,
    forget_achievements,
    notices_of_achievements,
    notices_of_league,
    notices_of_profile,
    notices_of_redemption,
    notices_of_result,
    offered_achievements,
    profile_view,
)
from rules.outgoing.notices import (
    Notice,
    NoticeType,
    Notification,
    board_holder,
    is_user,
    number_notices,
)
from rules.parts import said
from rules.user_ids import user_holder, user_of_holder, user_of_partition

logger = Logger(service="notifications")
RESERVE_SECONDS = 20
Change = Profile | Redemption | LeagueResult | TieChange | ThingChange
Step = Callable[[Any], tuple[list[Notice], Any]]  # from a state to new notices and the next state
ATTEMPTS_MAX = 5
CHANGES_AT_ONCE = 50  # of a holder: each may name another user, and a transaction has 100 writes
RESULTS_TOLD = timedelta(days=7)  # older final results are no news to an endpoint that is new
CHANGES_OF_PARTS: list[PartChanges] = list(said("noticed_changes"))


@dataclass(frozen=True, slots=True)
class NoticeSteps:
    """Makes steps of changes. Those of achievements and levels read further tables."""

    achievements: AchievementReader | None = None  # None: no endpoint wants achievements
    books: BookStore | None = None  # None: no endpoint wants levels
    profile_of: Callable[[str], Profile | None] = lambda _: None  # returns a user's profile

    def steps_of(
        self, changes: Sequence[Change], now: datetime, *, wants_achievements: bool, wants_levels: bool
    ) -> list[Step]:
        """Return the steps of a holder's changes, in order.

        wants_achievements, wants_levels: whether an endpoint may want them. If none does, they are not looked
        at.
        """
        profiles = [change for change in changes if isinstance(change, Profile)]
        levels = self._levels(now) if profiles and wants_levels else ()
        steps: list[Step] = [
            partial(self._notices_of, change=change, now=now, levels=levels) for change in changes
        ]
        if profiles and wants_achievements:
            steps.append(partial(self._achievement_notices, profile=profiles[-1], now=now))
        elif profiles:
            steps.append(forget_achievements)
        return steps

    def _levels(self, now: datetime) -> Sequence[Level]:
        """Return the levels of the book in force."""
        return self.books.books().at(now).book.levels if self.books else ()

    def repairs(self, now: datetime) -> RepairRules:
        """Return what the book in force says of repairs."""
        return self.books.books().at(now).book.repairs if self.books else NO_REPAIRS

    def with_terms(self, profile: Profile) -> Profile:
        """Return a profile with what the books say of dates."""
        return with_daily_terms(profile, self.books.daily_terms()) if self.books else profile

    def _notices_of(
        self, state: Any, change: Change, now: datetime, levels: Sequence[Level]
    ) -> tuple[list[Notice], Any]:
        """Return the notices of a change, and the next state."""
        if isinstance(change, Profile):
            if change.version <= state.version:  # the record came twice, or out of order
                return [], state
            profile, at = self.with_terms(change), unstamp(change.updated_at)
            return notices_of_profile(state, profile, at, levels, partial(self.repairs, now))
        if isinstance(change, Redemption):
            return notices_of_redemption(state, change, self._shown(state, change.user_id, now))
        if isinstance(change, LeagueResult):
            return self._league_notices(state, change, now)
        return change.notices(state, now)

    def _league_notices(
        self, state: UserNoticeState, result: LeagueResult, now: datetime
    ) -> tuple[list[Notice], UserNoticeState]:
        """Return the notice of a league's end."""
        if self.books is None:
            return [], state
        shown = self._shown(state, result.user_id, now)
        return notices_of_league(state, result.outcome, self.books.daily_terms(), shown, now)

    def _shown(self, state: UserNoticeState, user_id: str, now: datetime) -> ProfileView:
        """Return a user's profile as it was last sent, or as it is if that never was; empty: none."""
        if state.shown or (profile := self.profile_of(user_id)) is None:
            return state.shown
        return profile_view(self.with_terms(profile), now)

    def _achievement_notices(
        self, state: UserNoticeState, profile: Profile, now: datetime
    ) -> tuple[list[Notice], UserNoticeState]:
        """Return the notices of a user's achievements. There are none if nobody can tell them now."""
        if self.achievements is None or profile.version != state.version:
            return [], state
        book_store = self.achievements.streaks.book_store
        books = book_store.books()
        if books.newest.number < state.book:
            # An achievement that the books of the last look had would be withdrawn, and earned again.
            books = book_store.look()
        # The worker that looked last may have had a clock that is ahead of this one.
        at = max(now, unstamp(state.looked_at)) if state.looked_at else now
        declared = declared_achievements(books, at)
        achieved = _achieved(self.achievements, profile, declared, at)
        if achieved is None:
            return [], state
        notices, later = notices_of_achievements(state, offered_achievements(declared, books, at), achieved)
        if later == state:
            return notices, state
        return notices, replace(later, book=books.newest.number, looked_at=stamp(at))


def _achieved(
    reader: AchievementReader, profile: Profile, declared: Mapping[str, DeclaredAchievement], at: datetime
) -> dict[str, str] | None:
    """Return the instants of the achievements that a user has; None if nobody can tell now."""
    if not declared:
        return {}
    try:
        reading = reader.read(profile, declared, at, is_strong=True, is_bounded=False)
    except AccountContended:
        logger.exception("achievements not read")
        return None
    has_ledger = bool(profile.head or reading.history.head)  # a user without entries is never complete
    if has_ledger and not reading.is_complete:  # the profile is behind the ledger: it will soon change again
        return None
    return dict(reading.achieved)


@dataclass(slots=True)
class NotificationBatch(BatchResult):
    """The result of a batch. counts["changes"]: the changes that an endpoint may want."""

    shares: set[EndpointShare] = field(default_factory=set)  # the shares of endpoints to deliver to now


@dataclass(frozen=True, slots=True)
class NotificationWriter:
    """Writes notifications, and adds them to the lanes of the endpoints that want them."""

    dynamodb: Any
    profiles_table: str  # only sweep() needs it
    store: OutboxStore
    endpoints: EndpointStore
    steps: NoticeSteps = NoticeSteps()
    readers: Mapping[str, ReadChange] = field(default_factory=dict)  # of parts' items
    results: StandingStore | None = None  # of boards; only sweep() needs it
    told: set[str] = field(default_factory=set)  # holders of results that this process has notified

    def write(self, records: Iterable[Record], now: datetime) -> NotificationBatch:
        """Write the notifications of records, holder by holder.

        After a transient error all records of the holder are delivered again.
        """
        outcome = NotificationBatch()
        by_holder: dict[str, list[tuple[Record, Change]]] = {}
        read = partial(read_change, readers=self.readers)
        for record, (holder, change) in outcome.read(records if self.endpoints.known() else (), read):
            if self._is_followed(change):
                by_holder.setdefault(holder, []).append((record, change))
        for holder, pairs in by_holder.items():
            write_holder = partial(self._write_holder, outcome, holder, now)
            outcome.attempt(pairs, write_holder, logger, (*TRANSIENT, OutboxConflict))
        return outcome

    def _is_followed(self, change: Change) -> bool:
        """Whether an endpoint may want a change. Changes of profiles are always followed.

        So a user's state has the newest version of the profile. Notices by time alone are given only then.
        """
        if isinstance(change, LeagueResult):
            return self._may_want(NoticeType.LEAGUE_CLOSED)
        return not isinstance(change, ThingChange) or self._may_want(change.type)

    def _may_want(self, kind: str) -> bool:
        return any(endpoint.may_want(kind) for endpoint in self.endpoints.known())

    def _write_holder(
        self, outcome: NotificationBatch, holder: str, now: datetime, pairs: Sequence[tuple[Record, Change]]
    ) -> None:
        """Write the notifications of a holder's changes, and add them to the outcome of the batch."""
        for changes in chunks((change for _, change in pairs), CHANGES_AT_ONCE):
            steps = self.steps.steps_of(
                changes,
                now,
                wants_achievements=self._may_want(NoticeType.ACHIEVEMENT_EARNED),
                wants_levels=self._may_want(NoticeType.LEVEL_CHANGED),
            )
            outcome.shares |= self._write_steps(holder, steps, now)
        outcome.counts["changes"] += len(pairs)

    def _write_steps(self, holder: str, steps: Sequence[Step], now: datetime) -> set[EndpointShare]:
        """Write the notifications and the state that steps lead to, in one transaction.

        Returns the shares of endpoints in which notifications wait then. Raises OutboxConflict if others
        write the holder's state in all attempts, and the errors of DynamoDB.
        """
        for _ in pauses(ATTEMPTS_MAX):
            before, revision = self.store.get(holder)
            state, notifications = before, list[Notification]()
            for step in steps:
                notices, later = step(state)
                notifications += number_notices(holder, state.number, later.as_of, notices)
                state = later
            if state == before:
                return set()
            endpoint_ids = [
                endpoint.endpoint_id
                for endpoint in self.endpoints.known()
                if any(endpoint.wants(notification) for notification in notifications)
            ]
            # If nobody wants the notifications of a thing of a part, its state is not stored either.
            if not (endpoint_ids or is_user(holder)):
                return set()
            due = due_at(state) if isinstance(state, UserNoticeState) else None
            try:
                self.store.put(holder, OutboxWrite(state, revision, due, notifications, endpoint_ids), now)
            except OutboxConflict:
                continue
            return {endpoint_share(endpoint_id, holder) for endpoint_id in endpoint_ids}
        raise OutboxConflict(holder)

    def sweep(self, now: datetime, is_over: Callable[[], bool]) -> set[EndpointShare]:
        """Write the notifications that are due by time alone; returns the shares in which they wait.

        Users whose newest change has not arrived yet are left out: that change leads to their notifications.
        """
        shares: set[EndpointShare] = set()
        for holder in self.store.due(now) if self.endpoints.known() else ():
            if is_over():
                break
            found = _profile_of(self.dynamodb, self.profiles_table, user_of_holder(holder) or holder)
            if found is None:  # an erased user, whom the index may still have
                continue
            try:
                profile = self.steps.with_terms(found)
                repairs = partial(self.steps.repairs, now)
                step = partial(_timed_notices, profile=profile, at=now, repairs=repairs)
                shares |= self._write_steps(holder, [step], now)
            except OutboxConflict:
                continue
        return shares | self._finished_boards(now)

    def _finished_boards(self, now: datetime) -> set[EndpointShare]:
        """Write the notifications of final results of the last week. See sweep."""
        if not (self.results and self.steps.books and self._may_want(NoticeType.BOARD_FINISHED)):
            return set()
        terms, shares = self.steps.books.daily_terms(), set[EndpointShare]()
        if not any(rules.boards for _, rules in terms):
            return set()
        for period, result in self.results.recent().items():
            if now - result.closed_at > RESULTS_TOLD:
                continue
            for rule in boards_in(period, terms):
                holder = board_holder(rule.name, period.name)
                if holder in self.told:
                    continue
                step = partial(
                    _result_notices, rule=rule, result=result, users=result.users.get(rule.group, 0)
                )
                with suppress(OutboxConflict):
                    shares |= self._write_steps(holder, [step], now)
                    self.told.add(holder)
        return shares


def _result_notices(
    state: ItemNoticeState, rule: BoardRule, result: FinalResult, users: int
) -> tuple[list[Notice], ItemNoticeState]:
    return notices_of_result(state, rule, result.period, users, result.final_at)


def read_change(record: Record, readers: Mapping[str, ReadChange]) -> tuple[str, Change] | None:
    """Return the holder of a record and its change; None for a record that gives no notifications.

    The name of an item's partition key tells the table. readers: of the tables of parts, by that name.
    Raises KeyError, TypeError, ValueError and AttributeError for a record that cannot be read.
    """
    image = record["dynamodb"].get("NewImage")
    if not image:
        return None
    for attribute, read in readers.items():
        if attribute in image:
            return read(image)
    if LEAGUE in image:
        outcome, user_id = membership_of(image).outcome, user_of_partition(image["user_id"]["S"])
        return (user_holder(user_id), LeagueResult(user_id, outcome)) if outcome else None
    if "friend_id" in image:
        return read_tie(record)
    if "holder" not in image:
        profile = profile_from(decode_item(image))
        return user_holder(profile.user_id), profile
    return _read_redemption(record)


def _read_redemption(record: Record) -> tuple[str, Redemption] | None:
    image = record["dynamodb"]["NewImage"]
    if record["eventName"] != "INSERT" or "fulfilment" not in image:
        return None  # a stock, or a later change of a redemption
    redemption = redemption_from(image)
    is_new = redemption.fulfilment is Fulfilment.REQUESTED
    return (user_holder(redemption.user_id), redemption) if is_new else None


def _profile_of(dynamodb: Any, table: str, user_id: str) -> Profile | None:
    items = get_all(dynamodb, table, [{"user_id": user_id}])
    return profile_from(decode_item(items[0])) if items else None


def read_tie(record: Record) -> tuple[str, TieChange] | None:
    """Return the holder of a change of Friends; None for an item that is no tie."""
    change = record["dynamodb"]
    attributes = decode_item(change["NewImage"])
    if "state" not in attributes:
        return None
    tie = tie_from(attributes)
    seconds = float(change["ApproximateCreationDateTime"])
    at, place = datetime.fromtimestamp(seconds, UTC), event_version(seconds, change["SequenceNumber"])
    return user_holder(tie.user_id), TieChange(tie, stamp(at), place)


def _timed_notices(
    state: UserNoticeState, profile: Profile, at: datetime, repairs: Callable[[], RepairRules]
) -> tuple[list[Notice], UserNoticeState]:
    """Return the notices by time. A profile that the state has not seen is notified by its own record."""
    is_seen = profile.version == state.version
    return notices_of_profile(state, profile, at, repairs=repairs) if is_seen else ([], state)


@dataclass(frozen=True)
class OwnNotificationSettings(ConsumerSettings):
    """Tables, and the function that delivers."""

    user_streaks_table: str
    daily_activity_table: str
    rewards_ledger_table: str
    rule_books_table: str
    notifications_table: str
    boards_table: str
    webhook_endpoints_table: str
    event_bus_name: str  # "" for none
    deliver_function: str
    erasures_table: str
    erasure_secret_arn: str


NotificationSettings = with_settings(OwnNotificationSettings, *(part.settings for part in CHANGES_OF_PARTS))


@dataclass(frozen=True, slots=True)
class _Parts:
    writer: NotificationWriter
    lanes: LaneStore
    invoker: DeliveryInvoker
    erasure_check: ErasureCheck


def _notice_steps(config: OwnNotificationSettings, dynamodb: Any) -> NoticeSteps:
    ledger, days = LedgerStore(dynamodb, config.rewards_ledger_table), config.daily_activity_table
    books = BookStore(dynamodb, config.rule_books_table)
    accounts = AccountStore(
        dynamodb, config.user_streaks_table, days, ledger, 1, daily_terms=books.daily_terms
    )
    streaks = StreakReader(accounts, GoalStore(dynamodb, days), books)
    achievements = AchievementReader(streaks, AchievementStore(dynamodb, days), ledger)
    return NoticeSteps(achievements, books, partial(_profile_of, dynamodb, config.user_streaks_table))


@bootstrap(NotificationSettings)
def _parts(config: OwnNotificationSettings, client: ClientOf) -> _Parts:
    dynamodb = client("dynamodb")
    endpoints = EndpointStore(dynamodb, config.webhook_endpoints_table, config.event_bus_name)
    store = OutboxStore(dynamodb, config.notifications_table)
    readers: dict[str, ReadChange] = {}
    for part in CHANGES_OF_PARTS:
        readers |= part.readers(config, dynamodb)
    return _Parts(
        NotificationWriter(
            dynamodb,
            config.user_streaks_table,
            store,
            endpoints,
            _notice_steps(config, dynamodb),
            readers,
            StandingStore(dynamodb, config.boards_table),
        ),
        LaneStore(dynamodb, config.notifications_table),
        DeliveryInvoker(lambda: client("lambda"), config.deliver_function),
        tombstones_of(config, client),
    )


def _sweep(_event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Write the notifications of what time has changed, and wake the delivery of what is due."""
    parts, now = _parts(), clock.now()
    shares = parts.writer.sweep(now, Deadline(context, RESERVE_SECONDS).is_over)
    waiting = {
        (endpoint.endpoint_id, share)
        for endpoint in parts.writer.endpoints.all()
        if not endpoint.disabled
        for share in range(LANE_SHARDS)
        if parts.lanes.due(endpoint.endpoint_id, share, now, limit=1)
    }
    parts.invoker.wake(shares | waiting)
    swept = {"woken": len(shares | waiting)}
    logger.info("swept", extra=swept)
    return swept


@stream_consumer("outgoing", logger, otherwise=_sweep)
def handler(records: list[Record], now: datetime) -> NotificationBatch:
    """Lambda entry: a batch of a stream, or the schedule."""
    parts = _parts()
    outcome = parts.writer.write(
        [record for record in records if not names_erased(record, parts.erasure_check)], now
    )
    parts.invoker.wake(outcome.shares)
    return outcome
