"""What the functions of leads read from their environment."""

from dataclasses import dataclass

from adapters.settings.common import Allowance


@dataclass(frozen=True, slots=True)
class LeadsApiSettings(Allowance):
    """ingest.leads.leads_api."""

    lead_queue_url: str
    payload_bucket: str
    event_table: str
    memory_table: str
    feature_table: str
    group_events_table: str
    currency: str  # currency, phone_regions, campaign_grace_days: as in the parameter Settings
    phone_regions: str
    exchange_rates: str
    campaign_grace_days: int
    erasures_table: str
    erasure_secret_arn: str


@dataclass(frozen=True, slots=True)
class HooksApiSettings(Allowance):
    """ingest.leads.hooks_api."""

    lead_queue_url: str
    payload_bucket: str
    idempotency_keys_table: str
    hook_secret_prefix: str  # of hooks' names, such as `streakline/hooks/`
    currency: str
    phone_regions: str


@dataclass(frozen=True, slots=True)
class LeadsSettings:
    """ingest.leads.lead_consumer."""

    # postgresql://user[:password]@host:port/database, which signs in by IAM if it has no password; or
    # rds-data://DATABASE?cluster=CLUSTER_ARN&secret=SECRET_ARN, by the RDS Data API
    identity_url: str
    lead_queue_url: str  # where messages come from, and wait
    event_table: str
    idempotency_keys_table: str
    payload_bucket: str
    redis_url: str
    failure_queue_url: str
    currency: str
    phone_regions: str
    erasures_table: str
    erasure_secret_arn: str


@dataclass(frozen=True, slots=True)
class IdentityApiSettings(Allowance):
    """ingest.leads.identity_api."""

    identity_url: str  # as in LeadsSettings
    lead_queue_url: str
    phone_regions: str


@dataclass(frozen=True, slots=True)
class MigrateSettings:
    """ingest.leads.identity_migration."""

    identity_url: str  # the owner's, as in LeadsSettings
    admin_secret_arn: str  # has the owner's password, for a postgresql URL without one
    app_secret_arn: str  # has what streakline_leads_api is to sign in by, "" if nobody uses the Data API
