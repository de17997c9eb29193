"""What several functions read from their environment alike."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Allowance:
    """ingest.web.api."""

    limits_table: str
    reads_per_minute: int  # of one caller


@dataclass(frozen=True, slots=True)
class PrivacyTables:
    """Where persons are, but for copies and caches."""

    user_streaks_table: str
    bp_events_table: str
    daily_activity_table: str
    rewards_ledger_table: str
    rewards_table: str
    idempotency_keys_table: str
    limits_table: str
    event_table: str
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
    """ingest.privacy_api."""

    payload_bucket: str
    identity_url: str
    erasures_table: str
    erasure_secret_arn: str
    erasure_function: str  # makes exports
    phone_regions: str
    exports_per_day: int


@dataclass(frozen=True, slots=True)
class ErasureSettings(PrivacyTables):
    """processors.erasure."""

    boards_table: str
    group_events_table: str
    redis_url: str
    settle_seconds: int  # after this many seconds nobody writes who does not know a new tombstone
