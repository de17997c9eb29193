"""The nightly run's steps in the warehouse: load the partitions that it touched, build models, test them."""

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from adapters import settings
from adapters.platform.aws import client
from adapters.platform.objects import Objects, objects_at
from adapters.settings.lake import WarehouseSettings
from analytics.curation.plan import read_tasks
from analytics.lake import layout
from analytics.warehouse.build import build
from analytics.warehouse.ddl import prepare
from analytics.warehouse.load import Loader
from analytics.warehouse.model_tests import check
from analytics.warehouse.redshift_warehouse import RedshiftWarehouse
from analytics.warehouse.warehouse import Warehouse, warehouse_at
from analytics.warehouse.workgroup import ensure_daily_limit, grant_analysts

logger = Logger(service="warehouse")
metrics = Metrics(namespace="Streakline", service="warehouse")


def load(
    warehouse: Warehouse, objects: Objects, lake: str, role_arn: str, event: dict[str, Any]
) -> dict[str, Any]:
    """Load the curated files of the run's tasks. Loading again changes nothing."""
    changes = prepare(warehouse)
    if isinstance(warehouse, RedshiftWarehouse):
        grant_analysts(warehouse)
    tasks = read_tasks(objects, event["tasks_key"])
    files = Loader(warehouse, objects, lake, role_arn).load(event["run_id"], tasks)
    metrics.add_metric("LoadedFiles", MetricUnit.Count, sum(files.values()))
    return {"files": files, "changes": changes}


def models(warehouse: Warehouse, full: bool) -> dict[str, Any]:
    """Build the models. full: build the incremental ones anew too."""
    built = build(warehouse, full=full)
    metrics.add_metric("ModelsBuilt", MetricUnit.Count, len(built))
    return {"models": len(built)}


def test(warehouse: Warehouse, objects: Objects, run_id: str) -> dict[str, Any]:
    """Run the models' tests, and write those that fail to runs/{run_id}/tests.json."""
    failures = [asdict(each) for each in check(warehouse)]
    objects.put(layout.run_key(run_id, "tests.json"), json.dumps(failures, indent=1).encode())
    metrics.add_metric("ModelTestsFailed", MetricUnit.Count, len(failures))
    return {"failures": len(failures), "tests_key": layout.run_key(run_id, "tests.json")}


def limit(config: WarehouseSettings) -> None:
    """Set the daily limit of a workgroup of ours, before anything is computed in it."""
    if config.warehouse_workgroup_arn:
        redshift = client("redshift-serverless")
        ensure_daily_limit(redshift, config.warehouse_workgroup_arn, config.warehouse_daily_rpu_hours)


@cache
def _steps() -> dict[str, Callable[[dict[str, Any]], dict[str, Any]]]:
    config = settings.read(WarehouseSettings)
    lake = f"s3://{config.lake_bucket}"
    objects, warehouse = objects_at(lake), warehouse_at(config.warehouse_url, lake)
    limit(config)
    return {
        "load": lambda event: load(warehouse, objects, lake, config.copy_role_arn, event),
        "models": lambda event: models(warehouse, bool(event.get("full"))),
        "tests": lambda event: test(warehouse, objects, event["run_id"]),
    }


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: {"step": load, models or tests, "run_id", "tasks_key", "full"?}; a failed step raises."""
    metrics.add_metric("Steps", MetricUnit.Count, 1)
    answer = _steps()[event["step"]](event)
    logger.info("done", extra={"step": event["step"], "run_id": event["run_id"], **answer})
    return {"run_id": event["run_id"], **answer}
