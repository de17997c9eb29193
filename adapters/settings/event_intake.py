"""Settings of the two functions that take events of engagement."""

from dataclasses import dataclass

from adapters.settings.common import Allowance


@dataclass(frozen=True, slots=True)
class EventsApiSettings(Allowance):
    """Read by the function ingest.engagement.events_api."""

    user_streaks_table: str
    bp_events_table: str
    idempotency_keys_table: str
    redis_url: str
    rule_books_table: str
    rate_limit_per_minute: int  # events of one user; admins are not limited
    erasures_table: str
    erasure_secret_arn: str
    receipt_secret_arn: str


@dataclass(frozen=True, slots=True)
class EventsStreamSettings:
    """Read by the function ingest.engagement.events_stream."""

    user_streaks_table: str
    bp_events_table: str
    idempotency_keys_table: str
    payload_bucket: str
    rule_books_table: str
    failure_queue_url: str  # gets the records that the function cannot accept
    erasures_table: str
    erasure_secret_arn: str
