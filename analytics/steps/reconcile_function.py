"""The nightly run's steps that recompute from the lake, compare and repair the tables, and report.

`plan` makes shares of all users, `reconcile` does one share a call, and `collect` adds up their findings. For
these three, share_steps.py has the work. The comparisons of parts run beside them, `report` at the end.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import MetricUnit
from pyarrow import Table

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.engagement.account_store import AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import LedgerStore
from adapters.engagement.projections import Projections
from adapters.logs import Logger
from adapters.platform.objects import NoObject, Objects, S3Objects
from adapters.privacy.tombstones import tombstones_of
from adapters.settings import with_settings
from adapters.settings.parts import deployed_parts
from analytics.recompute.lake_users import LakeUsers
from analytics.recompute.user_shares import UserShare
from analytics.recompute.warehouse_disagreements import WAREHOUSE_MODEL, disagreements
from analytics.reconcile.findings import NightPlan
from analytics.reconcile.part_findings import Find
from analytics.reconcile.part_night import Step
from analytics.reconcile.run_report import (
    CURATION,
    FINDINGS_OF_PARTS,
    NIGHTS_OF_PARTS,
    Report,
    gather,
    is_built,
    is_settled,
    is_whole,
    publish,
    with_warehouse,
)
from analytics.reconcile.share_steps import ShareSteps
from analytics.warehouse.night import LastWarehouseRun, settle
from analytics.warehouse.warehouse import Warehouse, warehouse_at
from rules.parts import ALL_PARTS, Part

logger = Logger(service="reconcile")
metrics = Metrics(namespace="Streakline", service="reconcile")
StepAnswer = dict[str, Any]
# After so long a call begins no further users. The function has 900 s.
SECONDS_MAX = 600.0


@dataclass(frozen=True, slots=True)
class OwnReconcileSettings:
    """Settings of this function."""

    lake_bucket: str
    roots_bucket: str  # where roots over all ledgers are published
    warehouse_url: str  # see analytics.warehouse.warehouse.warehouse_at
    leaderboard_shards: int
    user_streaks_table: str
    daily_activity_table: str
    rewards_ledger_table: str
    redis_url: str
    erasures_table: str
    erasure_secret_arn: str


@dataclass(frozen=True, slots=True)
class ReconcileSteps:
    """The steps, with the stores that they use."""

    objects: Objects
    warehouse: Warehouse
    shares: ShareSteps  # the steps of the comparison of users
    part_steps: Mapping[str, Step] = field(default_factory=dict)  # by name
    finds: Mapping[str, Find] = field(default_factory=dict)  # of parts, by PartFindings.field
    deployed: Collection[Part] = ALL_PARTS

    def collect(self, event: Mapping[str, Any], now: datetime) -> StepAnswer:
        """Collect the findings of all shares of users: {"run_id", "repair"?} -> their figures, part_steps.

        part_steps: the names of the steps that compare the items of parts.
        """
        findings = self.shares.collect(event, now)
        counts = findings.counts
        _measure("Differences", counts["different"])
        _measure("Repaired", counts["repaired"])
        _measure("Unrepaired", len({*findings.unrepaired, *findings.frozen}))
        _measure("LakeDisagreements", counts["lake_disagreements"])
        if findings.root:
            logger.info("root", extra={"root": findings.root})
        part_steps = [each.step for each in NIGHTS_OF_PARTS if each.part in self.deployed]
        root = {"root": findings.root["root"]} if findings.root else {}
        return {"counts": counts, "part_steps": part_steps, **root}

    def compare_part(self, step: Step, event: Mapping[str, Any], now: datetime) -> StepAnswer:
        """Take a part's step: {"run_id", ...} -> its answer, with the figures."""
        answer = step(self.objects, event, now)
        counts = answer["counts"]
        _measure("Differences", counts["different"])
        _measure("Repaired", counts["repaired"])
        _measure("Unrepaired", counts["unrepaired"])
        _measure("LakeDisagreements", counts["disagreements"])
        return answer

    def report(self, event: Mapping[str, Any], now: datetime) -> StepAnswer:
        """Write the run's report: {"run_id", "repair"?, "error"?, "warehouse_error"?} -> see below.

        repair: what parts find in the warehouse may be repaired.
        error: why repair, or the whole run, ended early. warehouse_error: why the warehouse's work ended
        early. Returns counts (the figures), reports (keys), and is_whole (whether every step has succeeded).
        """
        report = gather(self.objects, event["run_id"], now, event.get("error"), event.get("warehouse_error"))
        report["parts"] = sorted(self.deployed)
        _measure("CurationFailures", len(report["curation_failures"]))
        if report["warehouse"]["quiet_since"]:  # nothing was loaded: the warehouse is not woken
            last = LastWarehouseRun.read(self.objects)
            report = with_warehouse(report, [], last.curation if last else [], {})
        elif not report["warehouse"]["error"]:
            try:
                report = self._add_warehouse(report, event.get("repair") is True, now)
            except Exception as error:  # noqa: BLE001 (a warehouse that is away now must not cost the report)
                report["warehouse"]["unread"] = f"{type(error).__name__}: {error}"
        _measure("TestFailures", len(report["failed_tests"]))
        _measure("TwinDisagreements", len(report["warehouse_and_lake"]))
        reports = publish(self.objects, report)
        if is_settled(report):
            settle(self.objects, report["run_id"], report["curation"])
        return {"counts": report["counts"], "reports": reports, "is_whole": is_whole(report)}

    def _add_warehouse(self, report: Report, may_repair: bool, now: datetime) -> Report:
        """Return the report with the warehouse's findings. Only models that this run has built are read."""
        run_id = report["run_id"]
        user_disagreements = []
        if not report["error"] and is_built(self.objects, run_id, WAREHOUSE_MODEL):
            user_disagreements = disagreements(self.warehouse, self._recomputed_shares(run_id))
        findings = {
            each.field: self.finds[each.field](may_repair, now)
            if is_built(self.objects, run_id, each.model)
            else []
            for each in FINDINGS_OF_PARTS
        }
        return with_warehouse(report, user_disagreements, self.warehouse.rows(CURATION), findings)

    def _recomputed_shares(self, run_id: str) -> Iterator[tuple[UserShare, Table]]:
        """Yield each share that was recomputed, with its users."""
        shares = NightPlan.load(self.objects, run_id).shares
        for number in range(shares):
            share = UserShare(number, shares)
            with suppress(NoObject):
                yield share, LakeUsers.load(self.objects, run_id, share).table


def _measure(name: str, number: int) -> None:
    metrics.add_metric(name, MetricUnit.Count, number)


ReconcileSettings = with_settings(
    OwnReconcileSettings,
    *(each.settings for each in NIGHTS_OF_PARTS),
    *(each.settings for each in FINDINGS_OF_PARTS),
)


@bootstrap(ReconcileSettings)
def _parts(config: OwnReconcileSettings, client: ClientOf) -> ReconcileSteps:
    dynamodb = client("dynamodb")
    objects = S3Objects(client("s3"), config.lake_bucket)
    profiles, days = config.user_streaks_table, config.daily_activity_table
    ledger = LedgerStore(dynamodb, config.rewards_ledger_table)
    shares = ShareSteps(
        objects,
        AccountStore(dynamodb, profiles, days, ledger, config.leaderboard_shards),
        Projections(dynamodb, profiles, days),
        EngagementCache(config.redis_url),
        erased=tombstones_of(config, client),
        roots=S3Objects(client("s3"), config.roots_bucket),
    )
    warehouse = warehouse_at(config.warehouse_url, f"s3://{config.lake_bucket}")
    return ReconcileSteps(
        objects,
        warehouse,
        shares,
        {each.step: each.step_of(config, dynamodb) for each in NIGHTS_OF_PARTS},
        {each.field: each.find_of(config, client, objects, warehouse) for each in FINDINGS_OF_PARTS},
        deployed_parts(),
    )


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> StepAnswer:
    """Lambda entry: {"step", "run_id", ...}; each step says its input."""
    metrics.add_metric("Steps", MetricUnit.Count, 1)
    steps, now = _parts(), clock.now()
    end = time.monotonic() + SECONDS_MAX
    step_functions: dict[str, Callable[[], StepAnswer]] = {
        "plan": lambda: steps.shares.plan(event, now),
        "reconcile": lambda: steps.shares.reconcile(event, now, lambda: time.monotonic() < end),
        "give_up": lambda: steps.shares.give_up(event),
        "collect": lambda: steps.collect(event, now),
        **{
            name: partial(steps.compare_part, part_step, event, now)
            for name, part_step in steps.part_steps.items()
        },
        "report": lambda: steps.report(event, now),
    }
    step = event["step"]
    if step not in step_functions:
        raise ValueError(f"no step {step!r}")
    answer = step_functions[step]()
    logger.info("done", extra={"step": step, "run_id": event["run_id"], **answer})
    return {"run_id": event["run_id"], **answer}
