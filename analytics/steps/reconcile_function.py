"""The nightly run's steps that compare: recompute from the lake, reconcile and repair the tables, report."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from adapters import clock, settings
from adapters.engagement.account_store import AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import LedgerStore
from adapters.engagement.projections import Projections
from adapters.leads.feature_queue import FeatureQueue
from adapters.leads.lead_event_store import LeadEventStore
from adapters.platform.aws import client
from adapters.platform.objects import Objects, objects_at
from adapters.questions.response_store import ResponseStore
from adapters.questions.user_stats_store import UserStatsStore
from adapters.settings.lake import ReconcileSettings
from analytics.recompute.recompute import Recomputed, recompute
from analytics.recompute.warehouse_disagreements import THEIRS, disagreements
from analytics.reconcile.answer_stats import reconcile_answers
from analytics.reconcile.lead_repair import LeadRepair
from analytics.reconcile.profile_history import SettingsHistory
from analytics.reconcile.reconcile_all import ReconcileScope, reconcile
from analytics.reconcile.reconcile_user import Reconciler
from analytics.reconcile.run_report import (
    CURATION,
    LEADS,
    Report,
    gather,
    is_built,
    is_whole,
    publish,
    with_warehouse,
)
from analytics.reconcile.stats_reconciler import StatsReconciler
from analytics.warehouse.warehouse import Warehouse, warehouse_at

logger = Logger(service="reconcile")
metrics = Metrics(namespace="Streakline", service="reconcile")
StepAnswer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReconcileSteps:
    """The four steps, with the stores that they use."""

    objects: Objects
    warehouse: Warehouse
    accounts: AccountStore
    projections: Projections
    redis: EngagementCache
    shards: int
    stats: UserStatsStore
    responses: ResponseStore
    lead_events: LeadEventStore
    features: FeatureQueue

    def recompute(self, event: Mapping[str, Any], now: datetime) -> StepAnswer:
        """{"run_id", "everybody"?} -> how many users were recomputed, and the key of the result.

        everybody: from all partitions of the lake, whatever is settled.
        """
        made = recompute(self.objects, now.date(), anew=event.get("everybody") is True)
        return {"users": made.table.num_rows, "streaks_key": made.save(self.objects, event["run_id"])}

    def reconcile(self, event: Mapping[str, Any], now: datetime) -> StepAnswer:
        """{"run_id", "repair"?, "from"?, "to"?, "everybody"?} -> the run's figures.

        repair: writes only if it is true; the default is false. from, to: the activity dates to compare;
        without both, all of them. everybody: look closely at all users.
        """
        past = SettingsHistory(self.objects)
        may_repair = event.get("repair") is True
        reconciler = Reconciler(self.accounts, self.projections, self.redis, self.shards, past, may_repair)
        span = None
        if event.get("from") and event.get("to"):
            span = (date.fromisoformat(event["from"]), date.fromisoformat(event["to"]))
        scope = ReconcileScope(span, event.get("everybody") is True)
        findings = reconcile(self.objects, event["run_id"], reconciler, now, scope)
        counts = findings.counts
        _measure("Differences", counts["different"])
        _measure("Repaired", counts["repaired"])
        _measure("Unrepaired", len({*findings.unrepaired, *findings.frozen}))
        _measure("LakeDisagreements", counts["lake_disagreements"])
        return {"counts": counts, "differences_key": findings.save(self.objects, event["run_id"])}

    def reconcile_answers(self, event: Mapping[str, Any], now: datetime) -> StepAnswer:
        """{"run_id", "repair"?, "everybody"?} -> the figures of people who answer questions."""
        reconciler = StatsReconciler(self.stats, self.responses, event.get("repair") is True)
        everybody = event.get("everybody") is True
        findings = reconcile_answers(self.objects, event["run_id"], reconciler, now, everybody=everybody)
        counts = findings.counts
        _measure("Differences", counts["different"])
        _measure("Repaired", counts["repaired"])
        _measure("Unrepaired", counts["unrepaired"])
        _measure("LakeDisagreements", counts["disagreements"])
        return {"counts": counts, "answer_stats_key": findings.save(self.objects, event["run_id"])}

    def report(self, event: Mapping[str, Any], now: datetime) -> StepAnswer:
        """{"run_id", "repair"?, "error"?, "warehouse_error"?} -> figures and keys, and whether all was done.

        repair: features of leads that differ are asked for anew, if the lake and the table agree.
        error: why repair, or the whole run, ended early; warehouse_error: why the warehouse's work did.
        """
        made = gather(self.objects, event["run_id"], now, event.get("error"), event.get("warehouse_error"))
        _measure("CurationFailures", len(made["curation_failures"]))
        if not made["warehouse"]["error"]:
            try:
                made = self._asked(made, event.get("repair") is True, now)
            except Exception as error:  # noqa: BLE001 (a warehouse that is away now must not cost the report)
                made["warehouse"]["unread"] = f"{type(error).__name__}: {error}"
        _measure("TestFailures", len(made["failed_tests"]))
        _measure("TwinDisagreements", len(made["warehouse_and_lake"]))
        reports = publish(self.objects, made)
        return {"counts": made["counts"], "reports": reports, "is_whole": is_whole(made)}

    def _asked(self, made: Report, may_repair: bool, now: datetime) -> Report:
        """Add what the warehouse tells. A model that is not of this run is not asked."""
        run_id, twin, leads = made["run_id"], [], []
        if not made["error"] and is_built(self.objects, run_id, THEIRS):
            twin = disagreements(self.warehouse, Recomputed.load(self.objects, run_id).table)
        if is_built(self.objects, run_id, "marts.lead_quality"):
            repair = LeadRepair(self.warehouse, self.lead_events, self.features, may_repair)
            leads = repair.ask(self.warehouse.rows(LEADS), now)
        return with_warehouse(made, twin, self.warehouse.rows(CURATION), leads)


def _measure(name: str, number: int) -> None:
    metrics.add_metric(name, MetricUnit.Count, number)


@cache
def _steps() -> ReconcileSteps:
    config, dynamodb = settings.read(ReconcileSettings), client("dynamodb")
    lake = f"s3://{config.lake_bucket}"
    profiles, days, shards = config.user_streaks_table, config.daily_activity_table, config.leaderboard_shards
    ledger = LedgerStore(dynamodb, config.rewards_ledger_table)
    return ReconcileSteps(
        objects_at(lake),
        warehouse_at(config.warehouse_url, lake),
        AccountStore(dynamodb, profiles, days, ledger, shards),
        Projections(dynamodb, profiles, days),
        EngagementCache(config.redis_url, shards),
        shards,
        UserStatsStore(dynamodb, config.user_stats_table, config.stats_shards),
        ResponseStore(dynamodb, config.responses_table),
        LeadEventStore(dynamodb, config.event_table),
        FeatureQueue(client("sqs"), config.feature_queue_url),
    )


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> StepAnswer:
    """Lambda entry: {"step": see below, "run_id", ...}; each step tells its input."""
    metrics.add_metric("Steps", MetricUnit.Count, 1)
    steps, now = _steps(), clock.now()
    if event["step"] == "recompute":
        answer = steps.recompute(event, now)
    elif event["step"] == "reconcile":
        answer = steps.reconcile(event, now)
    elif event["step"] == "reconcile_answers":
        answer = steps.reconcile_answers(event, now)
    elif event["step"] == "report":
        answer = steps.report(event, now)
    else:
        raise ValueError(f"no step {event['step']!r}")
    logger.info("done", extra={"step": event["step"], "run_id": event["run_id"], **answer})
    return {"run_id": event["run_id"], **answer}
