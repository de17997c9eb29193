"""Curates one task in a call, with more memory and disk: a large one, or one that failed among others.

A task that ends its process ends no other.
"""

from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import MetricUnit

from adapters.bootstrap import ClientOf, bootstrap
from adapters.logs import Logger
from adapters.platform.objects import Objects, S3Objects
from adapters.settings.parts import deployed_parts
from analytics.curation.curate import curate_in_run
from analytics.lake.catalog import Catalog
from analytics.lake.layout import Partition

logger = Logger(service="curation")
metrics = Metrics(namespace="Streakline", service="curation")


@dataclass(frozen=True, slots=True)
class CurateLargeSettings:
    """Settings of this function."""

    lake_bucket: str
    glue_database: str


@bootstrap(CurateLargeSettings)
def _parts(config: CurateLargeSettings, client: ClientOf) -> tuple[Objects, Catalog]:
    objects = S3Objects(client("s3"), config.lake_bucket)
    return objects, Catalog(client("glue"), config.glue_database, config.lake_bucket, deployed_parts())


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: {"run_id", "task": {"entity", "dt", "hour"}, "arrived", "rebuild"?} -> its file's counts.

    arrived: the dates of arrival of its raw objects; None: any. The call can be repeated.
    """
    task, (objects, catalog) = Partition(**event["task"]), _parts()
    logger.info("begins", extra=event["task"])  # if the process is killed, the log names the task
    rebuild = event.get("rebuild") is True
    counts = curate_in_run(objects, event["run_id"], task, rebuild=rebuild, arrived=event["arrived"])
    catalog.register([task])
    metrics.add_metric("CuratedRows", MetricUnit.Count, counts.curated)
    metrics.add_metric("QuarantinedRows", MetricUnit.Count, counts.quarantined)
    logger.info("done", extra=counts.as_dict())
    return counts.as_dict()
