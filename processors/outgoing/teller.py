"""Tells of users: what follows from changes of profiles, from redeemed rewards, and from time."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from aws_lambda_powertools import Logger

from adapters.engagement.account_items import profile_from
from adapters.engagement.points.redemption_store import redemption_from
from adapters.outgoing.endpoint_store import EndpointStore
from adapters.outgoing.told_store import Telling, ToldMeanwhile, ToldStore
from adapters.outgoing.waking import Share, share_of
from adapters.platform.aws import Unavailable, pauses
from adapters.platform.batches import Unprocessed, get_all
from adapters.platform.items import plain
from rules.days import unstamp
from rules.engagement.account_state import Profile
from rules.engagement.points.redemptions import Fulfilment, Redemption
from rules.outgoing.derive import ToldState, derived, due_at, redeemed
from rules.outgoing.notices import Notice, Notification, numbered

logger = Logger(service="telling")
ATTEMPTS_MAX = 5
Record = Mapping[str, Any]
Step = Callable[[ToldState], tuple[list[Notice], ToldState]]


@dataclass(slots=True)
class ToldBatch:
    """What became of records: each is told, to come again, or poison. shares: in which something waits."""

    told: int = 0
    again: list[str] = field(default_factory=list)
    poison: list[tuple[Any, str]] = field(default_factory=list)
    shares: set[Share] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Teller:
    """Tells of users: writes what follows from a change, or from time."""

    dynamodb: Any
    profiles: str
    store: ToldStore
    endpoints: EndpointStore

    def hear(self, records: Iterable[Record], now: datetime) -> ToldBatch:
        """Tell of what records say, user by user. A user's records come again together."""
        outcome = ToldBatch()
        by_user: dict[str, list[tuple[Record, Profile | Redemption]]] = {}
        for record in records if self.endpoints.known() else ():
            try:
                found = _read(record)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                outcome.poison.append((record, f"{type(error).__name__}: {error}"))
                continue
            if found:
                by_user.setdefault(found.user_id, []).append((record, found))
        for user, pairs in by_user.items():
            try:
                outcome.shares |= self.tell(user, [step_of(found) for _, found in pairs], now)
                outcome.told += len(pairs)
            except (*Unavailable, Unprocessed, ToldMeanwhile):
                logger.exception("to come again")
                outcome.again += [record["dynamodb"]["SequenceNumber"] for record, _ in pairs]
        return outcome

    def tell(self, user_id: str, steps: Sequence[Step], now: datetime) -> set[Share]:
        """Write what steps lead to, in one transaction; returns where something waits then.

        Raises ToldMeanwhile if others tell of the user all the time, and what DynamoDB raises.
        """
        for attempt in pauses(ATTEMPTS_MAX):
            before, revision = self.store.get([user_id])[user_id]
            told, found = before, list[Notification]()
            for step in steps:
                notices, later = step(told)
                found += numbered(user_id, told.number, later.as_of, notices)
                told = later
            if told == before:
                return set()
            wanting = [e.endpoint_id for e in self.endpoints.known() if any(e.wants(n.notice) for n in found)]
            try:
                telling = Telling(told, revision, due_at(told), found, wanting)
                self.store.put(user_id, telling, now)
                return {share_of(each, user_id) for each in wanting}
            except ToldMeanwhile:
                if attempt == ATTEMPTS_MAX - 1:
                    raise
        raise ToldMeanwhile(user_id)

    def sweep(self, now: datetime, is_over: Callable[[], bool]) -> set[Share]:
        """Tell of what time alone has changed. A user whose newest change has not come yet waits for it."""
        shares: set[Share] = set()
        for user in self.store.due(now) if self.endpoints.known() else ():
            if is_over():
                break
            found = get_all(self.dynamodb, self.profiles, [{"user_id": user}])
            profile = profile_from(plain(found[0])) if found else Profile(user)
            try:
                shares |= self.tell(user, [partial(_at_rest, profile=profile, at=now)], now)
            except ToldMeanwhile:
                continue
        return shares


def step_of(found: Profile | Redemption) -> Step:
    """Return what a record adds to what was told."""
    return (
        partial(_changed, profile=found)
        if isinstance(found, Profile)
        else partial(redeemed, redemption=found)
    )


def _changed(told: ToldState, profile: Profile) -> tuple[list[Notice], ToldState]:
    if profile.version <= told.version:
        return [], told
    return derived(told, profile, unstamp(profile.updated_at))


def _at_rest(told: ToldState, profile: Profile, at: datetime) -> tuple[list[Notice], ToldState]:
    return derived(told, profile, at) if profile.version == told.version else ([], told)


def _read(record: Record) -> Profile | Redemption | None:
    image = record["dynamodb"].get("NewImage")
    if not image:
        return None
    if "place" not in image:
        return profile_from(plain(image))
    if record["eventName"] != "INSERT" or "fulfilment" not in image:
        return None
    found = redemption_from(image)
    return found if found.fulfilment is Fulfilment.REQUESTED else None
