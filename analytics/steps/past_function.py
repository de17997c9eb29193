"""Finds a user's events that have left their table, for the function that answers (rule 22)."""

import time
from functools import cache
from typing import Any

from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import MetricUnit

from adapters import settings
from adapters.logs import Logger
from adapters.platform.objects import RangedObjects, objects_at
from adapters.settings.lake import PastEventsSettings
from analytics.retention.past_events import PastQuery, newest_events

logger = Logger(service="past")
metrics = Metrics(namespace="Streakline", service="past")
# It reads no further file then: whoever asks has 30 s, and gets a cursor to go on.
SECONDS_MAX = 8.0


@cache
def _parts() -> RangedObjects:
    return objects_at(f"s3://{settings.read_settings(PastEventsSettings).lake_bucket}")


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Lambda entry: {"user_id", "since", "until", "limit"} -> {"rows", "reached"}; see past_events.newest."""
    end = time.monotonic() + SECONDS_MAX
    rows, reached = newest_events(_parts(), PastQuery(**event), lambda: time.monotonic() < end)
    metrics.add_metric("PastEvents", MetricUnit.Count, len(rows))
    return {"rows": rows, "reached": reached}
