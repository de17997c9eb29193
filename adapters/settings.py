"""Each function's settings: read from the environment in one place, when first asked for."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from rules.days import parse_moment
from rules.engagement.points import RULES, Boost

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EventsApi:
    """ingest.engagement.events_api: rate_limit_per_minute counts a user's events; admins are not limited."""

    user_streaks_table: str
    bp_events_table: str
    idempotency_keys_table: str
    payload_bucket: str
    redis_url: str
    point_boosts: str
    rate_limit_per_minute: int
    index_idempotency_keys: bool


@dataclass(frozen=True, slots=True)
class EventsStream:
    """ingest.engagement.events_stream: what it cannot accept goes to failure_queue_url."""

    user_streaks_table: str
    bp_events_table: str
    idempotency_keys_table: str
    payload_bucket: str
    point_boosts: str
    index_idempotency_keys: bool
    failure_queue_url: str


@dataclass(frozen=True, slots=True)
class UsersApi:
    """ingest.engagement.users_api."""

    user_streaks_table: str
    daily_activity_table: str
    rewards_ledger_table: str
    bp_events_table: str
    idempotency_keys_table: str
    redis_url: str
    leaderboard_shards: int


@dataclass(frozen=True, slots=True)
class Engagement:
    """processors.engagement: what it cannot apply goes to failure_queue_url.

    writers: users written at the same time.
    """

    user_streaks_table: str
    daily_activity_table: str
    rewards_ledger_table: str
    bp_events_table: str
    redis_url: str
    leaderboard_shards: int
    failure_queue_url: str
    writers: int


@dataclass(frozen=True, slots=True)
class Ranks:
    """processors.ranks."""

    user_streaks_table: str
    redis_url: str
    leaderboard_shards: int


@dataclass(frozen=True, slots=True)
class Publisher:
    """processors.publisher: what it cannot place goes to failure_queue_url."""

    bp_events_table: str
    daily_activity_table: str
    rewards_ledger_table: str
    user_streaks_table: str
    event_table: str
    memory_table: str
    feature_table: str
    events_delivery_stream: str
    daily_activity_delivery_stream: str
    ledger_delivery_stream: str
    streaks_delivery_stream: str
    lead_events_delivery_stream: str
    lead_memory_delivery_stream: str
    lead_features_delivery_stream: str
    failure_queue_url: str


@dataclass(frozen=True, slots=True)
class Warehouse:
    """analytics.steps.warehouse_function. warehouse_url: see analytics.warehouse.warehouse.warehouse_at.

    copy_role_arn: the role that Redshift reads the lake with; a DuckDB file needs none.
    """

    lake_bucket: str
    warehouse_url: str
    copy_role_arn: str


@dataclass(frozen=True, slots=True)
class Curate:
    """analytics.steps.curate_function."""

    lake_bucket: str
    glue_database: str


@dataclass(frozen=True, slots=True)
class Reconcile:
    """analytics.steps.reconcile_function. warehouse_url: see analytics.warehouse.warehouse.warehouse_at."""

    lake_bucket: str
    warehouse_url: str
    user_streaks_table: str
    daily_activity_table: str
    rewards_ledger_table: str
    redis_url: str
    leaderboard_shards: int


@dataclass(frozen=True, slots=True)
class LeadsApi:
    """ingest.leads.leads_api: currency is the one that amounts are in."""

    lead_queue_url: str
    payload_bucket: str
    event_table: str
    memory_table: str
    feature_table: str
    currency: str


@dataclass(frozen=True, slots=True)
class Leads:
    """ingest.leads.lead_consumer.

    identity_url: postgresql://user[:password]@host:port/database; without a password, IAM signs in.
    """

    identity_url: str
    event_table: str
    idempotency_keys_table: str
    payload_bucket: str
    redis_url: str
    failure_queue_url: str
    currency: str


@dataclass(frozen=True, slots=True)
class LeadEvents:
    """processors.lead_events."""

    lead_events_topic_arn: str
    failure_queue_url: str


@dataclass(frozen=True, slots=True)
class Memory:
    """processors.memory."""

    event_table: str
    memory_table: str
    feature_table: str
    failure_queue_url: str


@dataclass(frozen=True, slots=True)
class Features:
    """processors.features: feature_shards splits the index of active leads."""

    event_table: str
    memory_table: str
    feature_table: str
    feature_shards: int
    failure_queue_url: str


@dataclass(frozen=True, slots=True)
class Refresh:
    """processors.refresh."""

    feature_table: str
    feature_queue_url: str
    feature_shards: int


@dataclass(frozen=True, slots=True)
class Migrate:
    """ingest.leads.identity_migration: identity_url is the owner's; the secret holds the password."""

    identity_url: str
    admin_secret_arn: str


@dataclass(frozen=True, slots=True)
class Page:
    """ingest.page. oidc_authority: the issuer's URL; empty: people come with a token in the address.

    oidc_origins: further origins that the sign-in speaks to (a Cognito domain), divided by spaces.
    """

    oidc_authority: str
    oidc_client_id: str
    oidc_origins: str


@dataclass(frozen=True, slots=True)
class Operations:
    """ingest.operations_api. queue_urls: JSON, name -> URL; one named ...Failures waits for an operator."""

    redis_url: str
    lake_bucket: str
    queue_urls: str


@dataclass(frozen=True, slots=True)
class QuestionsApi:
    """ingest.questions.questions_api: rate_limit_per_minute counts a fingerprint's answers.

    fingerprint_secret_arn: the secret whose string is the key of the fingerprints' hash.
    """

    questions_table: str
    responses_table: str
    subscriptions_table: str
    user_stats_table: str
    stats_shards: int
    fingerprint_secret_arn: str
    redis_url: str
    rate_limit_per_minute: int


@dataclass(frozen=True, slots=True)
class Answers:
    """processors.answers: what it cannot count goes to failure_queue_url."""

    responses_table: str
    user_stats_table: str
    stats_shards: int
    bp_events_table: str
    idempotency_keys_table: str
    user_streaks_table: str
    index_idempotency_keys: bool
    point_boosts: str
    failure_queue_url: str


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """ingest.questions.subscriptions: what its routes need of ingest.questions.questions_api's settings."""

    subscriptions_table: str


@dataclass(frozen=True, slots=True)
class Notify:
    """processors.notify. platform_application_arn: SNS's, for FCM; "" tells nobody.

    writers: messages on their way at the same time. What cannot be announced goes to failure_queue_url.
    """

    questions_table: str
    subscriptions_table: str
    platform_application_arn: str
    failure_queue_url: str
    writers: int


@dataclass(frozen=True, slots=True)
class Reminders:
    """processors.reminders: see Notify."""

    user_streaks_table: str
    subscriptions_table: str
    platform_application_arn: str
    writers: int


def variable(field_name: str) -> str:
    """Return the environment variable of a field."""
    return field_name.upper()


def read(kind: type[T], environ: Mapping[str, str] = os.environ) -> T:
    """Fill a settings class; raises RuntimeError that names every variable missing or malformed."""
    values: dict[str, Any] = {}
    wrong: list[str] = []
    for each in fields(kind):  # type: ignore[arg-type]  # T is one of the dataclasses above
        text = environ.get(variable(each.name))
        try:
            if text is None:
                raise ValueError("is not set")
            values[each.name] = _READERS[
                str(each.type if isinstance(each.type, str) else each.type.__name__)
            ](text)
        except ValueError as error:
            wrong.append(f"{variable(each.name)} {error}")
    if wrong:
        raise RuntimeError("; ".join(wrong))
    return kind(**values)


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("must be true or false")
    return text == "true"


_READERS: dict[str, Any] = {"str": str, "int": int, "bool": _flag}


def boosts(text: str) -> tuple[Boost, ...]:
    """Read boosts from JSON: [{"since", "until", "factor", "event_types"?}], instants in RFC 3339.

    Raises ValueError for anything else: a function that cannot tell points must not start.
    """
    try:
        listed = json.loads(text or "[]")
        if not isinstance(listed, list):
            raise TypeError("it is no list")
        return tuple(_boost(each) for each in listed)
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"POINT_BOOSTS cannot be read: {error!r}") from None


def _boost(each: Mapping[str, Any]) -> Boost:
    factor, types = each["factor"], each.get("event_types", [])
    if type(factor) is not int or factor < 1:
        raise ValueError("factor is no whole number from 1")
    if not isinstance(types, list) or not RULES.keys() >= set(types):
        raise ValueError("event_types is no list of known types")
    since, until = parse_moment(each["since"]).utc, parse_moment(each["until"]).utc
    return Boost(since, until, factor, frozenset(types))
