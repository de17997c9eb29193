"""Every online store of the inventory, with what finds and removes a person in it (rule 10)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from adapters.platform.items import plain
from adapters.platform.limits import places_of
from adapters.postgresql.sql import Database
from adapters.privacy.other_erasers import MINUTES, RATES, BoardEraser, ObjectEraser, RedisEraser
from adapters.privacy.people_erasers import (
    AnswerLineEraser,
    IdentityEraser,
    ResponseEraser,
    SubscriptionEraser,
)
from adapters.privacy.person import Person
from adapters.privacy.table_erasers import KeyEraser, PartitionEraser
from adapters.settings.common import ErasureSettings, PrivacyTables
from rules.leads.lead_events import SORT_KEY
from rules.leads.series import mark_of
from rules.outgoing.notices import lead_holder


class StoreEraser(Protocol):
    """One store. What find returns is what remove deletes; removing what is gone changes nothing."""

    def find(self, person: Person) -> Sequence[Any]:
        """Return everything of the person that is there now."""

    def remove(self, found: Sequence[Any]) -> None:
        """Delete it."""


@dataclass(frozen=True, slots=True)
class Clients:
    """What the stores are reached by. s3, sns: made when needed. database: None where nobody is a lead."""

    dynamodb: Any
    s3: Callable[[], Any]
    sns: Callable[[], Any]
    database: Database | None


def stores(clients: Clients, tables: PrivacyTables, now: datetime) -> Mapping[str, StoreEraser]:
    """Return the stores by their names in rules.privacy.inventory; without those that copy others."""

    def table(name: str, *key: str, of: Callable[[Person], Iterable[str]] = _user) -> PartitionEraser:
        return PartitionEraser(clients.dynamodb, name, key, of)

    days = table(tables.daily_activity_table, "user_id", "activity_date")
    events = table(tables.event_table, "lead_organization_id", SORT_KEY, of=_leads)
    sent = table(tables.bp_events_table, "user_id", "event_id")
    claims = tables.idempotency_keys_table
    found: dict[str, StoreEraser] = {
        "UserStreaks": table(tables.user_streaks_table, "user_id"),
        "BPEvents": sent,
        "DailyActivity": days,
        "RewardsLedger": table(tables.rewards_ledger_table, "account_id", "created_at"),
        "Rewards": table(tables.rewards_table, "holder", "place"),
        "IdempotencyKeys": Both(
            table(claims, "user_id", "idempotency_key"),
            KeyEraser(clients.dynamodb, claims, lambda person: _claims_of_leads(events.items(person))),
        ),
        "Notifications": table(tables.notifications_table, "holder", "place", of=_told),
        "Limits": KeyEraser(clients.dynamodb, tables.limits_table, lambda person: _counters(person, now)),
        "Event": events,
        "Memory": table(tables.memory_table, "lead_organization_id", "memory_type#key", of=_leads),
        "Feature": table(tables.feature_table, "lead_organization_id", of=_leads),
        "Responses": ResponseEraser(clients.dynamodb, tables.responses_table),
        "UserStats": table(tables.user_stats_table, "fingerprint_hash", of=lambda person: person.hashes),
        "Subscriptions": SubscriptionEraser(
            clients.dynamodb, clients.sns, tables.subscriptions_table, tables.limits_table
        ),
        "PayloadBucket": ObjectEraser(clients.s3, tables.payload_bucket, events),
    }
    if clients.database:
        found["PostgreSQL"] = IdentityEraser(clients.database)
    return found


def stores_and_copies(clients: Clients, config: ErasureSettings, now: datetime) -> Mapping[str, StoreEraser]:
    """Return all of them, also those that only copy what others say."""
    dynamodb = clients.dynamodb
    days = PartitionEraser(dynamodb, config.daily_activity_table, ("user_id", "activity_date"), _user)
    sent = PartitionEraser(dynamodb, config.bp_events_table, ("user_id", "event_id"), _user)
    grouped = ("root_id", "event_type#occurred_at#id")
    return {
        **stores(clients, config, now),
        "AnswerLines": AnswerLineEraser(dynamodb, config.answer_lines_table),
        "Boards": BoardEraser(dynamodb, config.boards_table),
        "GroupEvents": PartitionEraser(dynamodb, config.group_events_table, grouped, _leads),
        "Redis": RedisEraser(config.redis_url, days, sent, now),
    }


@dataclass(frozen=True, slots=True)
class Both:
    """Two kinds of things in one table."""

    users: PartitionEraser
    leads: KeyEraser

    def find(self, person: Person) -> Sequence[Any]:
        """Return the keys of both."""
        return [*self.users.find(person), *self.leads.find(person)]

    def items(self, person: Person) -> Iterator[Any]:
        """Yield the whole items of both."""
        yield from self.users.items(person)
        yield from self.leads.items(person)

    def remove(self, found: Sequence[Any]) -> None:
        """Delete what was found."""
        self.users.remove(found)


def _user(person: Person) -> Iterable[str]:
    return [person.user_id] if person.user_id else []


def _told(person: Person) -> Iterable[str]:
    return [*_user(person), *map(lead_holder, person.leads)]


def _leads(person: Person) -> Iterable[str]:
    return person.leads


def _claims_of_leads(events: Iterable[Any]) -> Iterator[dict[str, str]]:
    """Yield the keys of the claims, orders and notes of leads' events, whether they are there or not."""
    for event in map(plain, events):
        source, place = str(event["source"]), str(event[SORT_KEY])
        moment, number = mark_of(*place.split("#", 1))
        named = [f"{source}#{event['external_event_id']}", f"{source}#order:{event.get('object_id')}"]
        yield from ({"user_id": each, "idempotency_key": "lead-event"} for each in named)
        yield {"user_id": f"lead-counted#{moment:x}.{number}", "idempotency_key": "counted"}


def _counters(person: Person, now: datetime) -> Iterator[dict[str, str]]:
    if person.user_id:
        yield {"counter": places_of(person.user_id)}
        yield {"counter": f"open-questions#{person.user_id}"}
        minute = int(now.timestamp()) // 60
        for kind in RATES:
            yield from ({"counter": f"{kind}#{person.user_id}#{minute + each}"} for each in MINUTES)
