"""Settings of the functions of the lake and the warehouse."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CurateSettings:
    """Read by the function analytics.steps.curate_function."""

    lake_bucket: str
    glue_database: str
    raw_retention_days: int  # how long the lake keeps raw objects; 0: for ever
    curate_job_name: str  # the Glue job that curates large nights
    spark_from_gb: int  # the Glue job curates a night whose raw objects have more GB; 0: it curates none


@dataclass(frozen=True, slots=True)
class CurateLargeSettings:
    """Read by the function analytics.steps.curate_large_function."""

    lake_bucket: str
    glue_database: str


@dataclass(frozen=True, slots=True)
class WarehouseSettings:
    """Read by the function analytics.steps.warehouse_function."""

    lake_bucket: str
    warehouse_url: str  # see analytics.warehouse.warehouse.warehouse_at
    copy_role_arn: str  # the role that Redshift reads the lake with; a DuckDB file needs none
    # The workgroup of Redshift that gets the daily limit; "": the deployment has no workgroup of its own
    warehouse_workgroup_arn: str
    warehouse_daily_rpu_hours: int
    campaign_grace_days: int
    erasures_table: str


@dataclass(frozen=True, slots=True)
class ForgetSettings:
    """Read by the function analytics.steps.forget_function."""

    lake_bucket: str
    erasures_table: str
    erasure_secret_arn: str
    lake_settle_seconds: int  # this long after a row was sent, it is in the lake


@dataclass(frozen=True, slots=True)
class RetainSettings:
    """Read by the function analytics.steps.retain_function.

    After the given days, events, payloads and texts of answers leave their tables; 0: they stay.
    """

    lake_bucket: str
    bp_events_table: str
    event_table: str
    responses_table: str
    event_hot_days: int
    payload_retention_days: int
    answer_text_retention_days: int


@dataclass(frozen=True, slots=True)
class PastEventsSettings:
    """Read by the function analytics.steps.past_function."""

    lake_bucket: str


@dataclass(frozen=True, slots=True)
class WhatIfSettings:
    """Read by the function analytics.steps.what_if_function."""

    lake_bucket: str


@dataclass(frozen=True, slots=True)
class ReconcileSettings:
    """Read by the function analytics.steps.reconcile_function."""

    lake_bucket: str
    roots_bucket: str  # where roots over all ledgers are published
    warehouse_url: str  # see analytics.warehouse.warehouse.warehouse_at
    leaderboard_shards: int
    user_streaks_table: str
    daily_activity_table: str
    rewards_ledger_table: str
    responses_table: str
    user_stats_table: str
    event_table: str
    feature_table: str
    feature_queue_url: str
    redis_url: str
    stats_shards: int
    erasures_table: str
    erasure_secret_arn: str
