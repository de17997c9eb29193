"""Settings that several functions share, and those of the functions for privacy."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Allowance:
    """Read by every function of an HTTP API (ingest.web.api): how many requests a caller may make."""

    limits_table: str
    reads_per_minute: int  # of one caller


@dataclass(frozen=True, slots=True)
class PrivacyTables:
    """All stores that have data of persons, without copies and caches."""

    user_streaks_table: str
    bp_events_table: str  # "bp" are bestie points
    daily_activity_table: str
    rewards_ledger_table: str
    rewards_table: str
    idempotency_keys_table: str
    limits_table: str
    event_table: str  # lead events
    memory_table: str
    feature_table: str
    responses_table: str
    subscriptions_table: str
    user_stats_table: str
    notifications_table: str
    payload_bucket: str
    identity_url: str
    fingerprint_secret_arn: str
    erasures_table: str
    erasure_secret_arn: str


@dataclass(frozen=True, slots=True)
class PrivacyApiSettings(Allowance):
    """Read by the function ingest.privacy_api."""

    payload_bucket: str
    identity_url: str
    erasures_table: str
    erasure_secret_arn: str
    erasure_function: str  # the function that makes exports
    phone_regions: str
    exports_per_day: int


@dataclass(frozen=True, slots=True)
class ErasureSettings(PrivacyTables):
    """Read by the function processors.erasure."""

    boards_table: str
    group_events_table: str
    redis_url: str
    settle_seconds: int  # this long after a tombstone was written, every process that writes knows it
