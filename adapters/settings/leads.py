"""Settings of the functions of leads."""

from dataclasses import dataclass

from adapters.settings.common import Allowance


@dataclass(frozen=True, slots=True)
class LeadsApiSettings(Allowance):
    """Read by the function ingest.leads.leads_api."""

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
    """Read by the function ingest.leads.hooks_api."""

    lead_queue_url: str
    payload_bucket: str
    # A hook's secret has the name {hook_secret_prefix}{organization_id}/{source}. Example of a prefix:
    # `streakline/hooks/`.
    hook_secret_prefix: str
    currency: str
    phone_regions: str


@dataclass(frozen=True, slots=True)
class LeadsSettings:
    """Read by the function ingest.leads.lead_consumer."""

    # postgresql://user[:password]@host:port/database: by a driver, which signs in by IAM if there is no
    # password rds-data://DATABASE?cluster=CLUSTER_ARN&secret=SECRET_ARN: by the RDS Data API
    identity_url: str
    lead_queue_url: str  # the queue that the function reads, and in which messages wait for another attempt
    event_table: str
    idempotency_keys_table: str
    payload_bucket: str
    failure_queue_url: str
    currency: str
    phone_regions: str
    erasures_table: str
    erasure_secret_arn: str


@dataclass(frozen=True, slots=True)
class IdentityApiSettings(Allowance):
    """Read by the function ingest.leads.identity_api."""

    identity_url: str  # as in LeadsSettings
    lead_queue_url: str
    phone_regions: str


@dataclass(frozen=True, slots=True)
class MigrateSettings:
    """Read by the function ingest.leads.identity_migration."""

    identity_url: str  # as in LeadsSettings, with the role that owns the schema
    admin_secret_arn: str  # the secret with the owner's password, if identity_url has none
    # The secret by which the role streakline_leads_api signs in to the Data API; "": nobody uses the Data API
    app_secret_arn: str
