"""What the functions of leads read from their environment."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LeadsApiSettings:
    """ingest.leads.leads_api. currency: the one currency of all amounts."""

    lead_queue_url: str
    payload_bucket: str
    event_table: str
    memory_table: str
    feature_table: str
    currency: str


@dataclass(frozen=True, slots=True)
class LeadsSettings:
    """ingest.leads.lead_consumer.

    identity_url: postgresql://user[:password]@host:port/database. Without a password it signs in by IAM.
    """

    identity_url: str
    event_table: str
    idempotency_keys_table: str
    payload_bucket: str
    redis_url: str
    failure_queue_url: str
    currency: str


@dataclass(frozen=True, slots=True)
class LeadEventsSettings:
    """processors.lead_events."""

    lead_events_topic_arn: str
    failure_queue_url: str


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """processors.memory."""

    event_table: str
    memory_table: str
    feature_table: str
    failure_queue_url: str


@dataclass(frozen=True, slots=True)
class FeaturesSettings:
    """processors.features: feature_shards splits the index of active leads."""

    event_table: str
    memory_table: str
    feature_table: str
    feature_shards: int
    failure_queue_url: str


@dataclass(frozen=True, slots=True)
class RefreshSettings:
    """processors.refresh."""

    feature_table: str
    feature_queue_url: str
    feature_shards: int


@dataclass(frozen=True, slots=True)
class MigrateSettings:
    """ingest.leads.identity_migration: identity_url is the owner's; the secret holds the password."""

    identity_url: str
    admin_secret_arn: str
