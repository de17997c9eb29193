"""What the two doors of engagement read from their environment."""

from dataclasses import dataclass

from adapters.settings.common import Allowance


@dataclass(frozen=True, slots=True)
class EventsApiSettings(Allowance):
    """ingest.engagement.events_api: rate_limit_per_minute counts a user's events; admins are not limited."""

    user_streaks_table: str
    bp_events_table: str
    idempotency_keys_table: str
    redis_url: str
    rule_books_table: str
    rate_limit_per_minute: int
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
    failure_queue_url: str
    erasures_table: str
    erasure_secret_arn: str
