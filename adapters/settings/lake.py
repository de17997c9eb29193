"""What the functions of the lake and the warehouse read from their environment."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CurateSettings:
    """analytics.steps.curate_function."""

    lake_bucket: str
    glue_database: str
    raw_retention_days: int  # 0 for ever
    curate_job_name: str  # the Glue job
    spark_from_gb: int  # a night with more raw GB is handed to it first; 0: never


@dataclass(frozen=True, slots=True)
class CurateLargeSettings:
    """analytics.steps.curate_large_function."""

    lake_bucket: str
    glue_database: str


@dataclass(frozen=True, slots=True)
class WarehouseSettings:
    """analytics.steps.warehouse_function."""

    lake_bucket: str
    warehouse_url: str  # see analytics.warehouse.warehouse.warehouse_at
    copy_role_arn: str  # the role that Redshift reads the lake with; a DuckDB file needs none
    # The workgroup that gets the daily limit; "" for a warehouse that is not ours
    warehouse_workgroup_arn: str
    warehouse_daily_rpu_hours: int
    campaign_grace_days: int
    erasures_table: str


@dataclass(frozen=True, slots=True)
class ForgetSettings:
    """analytics.steps.forget_function."""

    lake_bucket: str
    erasures_table: str
    erasure_secret_arn: str
    lake_settle_seconds: (
        int  # after this many seconds nothing that was sent before is on its way to the lake any more
    )


@dataclass(frozen=True, slots=True)
class RetainSettings:
    """analytics.steps.retain_function. Days: after so many what is meant leaves its table; 0: never."""

    lake_bucket: str
    bp_events_table: str
    event_table: str
    responses_table: str
    event_hot_days: int
    payload_retention_days: int
    answer_text_retention_days: int


@dataclass(frozen=True, slots=True)
class PastEventsSettings:
    """analytics.steps.past_function."""

    lake_bucket: str


@dataclass(frozen=True, slots=True)
class WhatIfSettings:
    """analytics.steps.what_if_function."""

    lake_bucket: str


@dataclass(frozen=True, slots=True)
class ReconcileSettings:
    """analytics.steps.reconcile_function."""

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
