"""What the functions of engagement read from their environment."""

from dataclasses import dataclass

from adapters.settings.streak_index import StreakIndex


@dataclass(frozen=True, slots=True)
class EventsApiSettings:
    """ingest.engagement.events_api: rate_limit_per_minute counts a user's events; admins are not limited."""

    user_streaks_table: str
    bp_events_table: str
    idempotency_keys_table: str
    payload_bucket: str
    redis_url: str
    rule_books_table: str
    limits_table: str
    rate_limit_per_minute: int
    index_idempotency_keys: bool
    erasures_table: str
    erasure_secret_arn: str
    receipt_secret_arn: str


@dataclass(frozen=True, slots=True)
class EventsStreamSettings:
    """ingest.engagement.events_stream: what it cannot accept goes to failure_queue_url."""

    user_streaks_table: str
    bp_events_table: str
    idempotency_keys_table: str
    payload_bucket: str
    rule_books_table: str
    index_idempotency_keys: bool
    failure_queue_url: str
    erasures_table: str
    erasure_secret_arn: str


@dataclass(frozen=True, slots=True)
class UsersApiSettings(StreakIndex):
    """ingest.engagement.users. event_hot_days: after so many events leave their table; 0: they expire."""

    user_streaks_table: str
    daily_activity_table: str
    rewards_ledger_table: str
    rewards_table: str
    bp_events_table: str
    idempotency_keys_table: str
    boards_table: str
    redis_url: str
    rule_books_table: str
    fingerprint_secret_arn: str
    limits_table: str
    commands_per_minute: int
    board_reads_per_minute: int
    erasures_table: str
    erasure_secret_arn: str
    receipt_secret_arn: str
    event_hot_days: int
    past_function: str


@dataclass(frozen=True, slots=True)
class RulesApiSettings:
    """ingest.book.rules_api."""

    rule_books_table: str


@dataclass(frozen=True, slots=True)
class EngagementSettings(StreakIndex):
    """processors.engagement: what it cannot apply goes to failure_queue_url.

    writers: how many users it writes at the same time. joint_projections: how it writes days and
    profiles of many users in one request (joint_projections.WAYS).
    """

    user_streaks_table: str
    daily_activity_table: str
    rewards_ledger_table: str
    rule_books_table: str
    redis_url: str
    failure_queue_url: str
    writers: int
    joint_projections: str
    erasures_table: str
    erasure_secret_arn: str


@dataclass(frozen=True, slots=True)
class FulfilmentSettings:
    """processors.fulfilment: redeemed rewards go to shipment_queue_url, what is none to failure_queue_url.

    Every change goes to table_items_delivery_stream.
    """

    shipment_queue_url: str
    failure_queue_url: str
    rewards_table: str
    table_items_delivery_stream: str
    erasures_table: str
    erasure_secret_arn: str


@dataclass(frozen=True, slots=True)
class RanksSettings:
    """processors.ranks."""

    user_streaks_table: str
    boards_table: str
    redis_url: str


@dataclass(frozen=True, slots=True)
class ExpirySettings(StreakIndex):
    """processors.expiry."""

    user_streaks_table: str
    daily_activity_table: str
    rewards_ledger_table: str
    rule_books_table: str
    redis_url: str
