"""The nightly run's last step: items and values that have become old leave the tables (rule 22)."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import MetricUnit

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.logs import Logger
from adapters.platform.item_tables import AgedItems
from adapters.platform.objects import NoObject, Objects, S3Objects
from adapters.settings import with_settings
from analytics.curation.plan import curated_tasks
from analytics.lake.layout import run_key
from analytics.retention import (
    Events,
    PartRetention,
    RemovalCounts,
    RetentionPass,
    RetentionRule,
)
from rules.parts import said

logger = Logger(service="retention")
metrics = Metrics(namespace="Streakline", service="retention")
# After so long a call begins no further work. The function has 900 s.
SECONDS_MAX = 600.0
# A night makes at most so many calls, because it must come to its report. The next night goes on.
CALLS_MAX = 18
STATE_NAME = "retain.json"  # below runs/{run_id}/


@dataclass(frozen=True, slots=True)
class OwnRetainSettings:
    """Settings of this function.

    After the given days, events and what parts say leave their tables; 0: they stay. A table's name is "" if
    the deployment leaves its part out.
    """

    lake_bucket: str
    bp_events_table: str
    event_hot_days: int


@dataclass(frozen=True, slots=True)
class RetainSteps:
    """The step, and what it uses."""

    objects: Objects
    rules: Sequence[RetentionRule]  # a rule of 0 days is off

    def retain(
        self, event: Mapping[str, Any], now: datetime, has_time: Callable[[], bool] = lambda: True
    ) -> dict[str, Any]:
        """Remove as much as one call has time for: {"run_id", "tasks_key"} -> {"is_left", "left", "stayed"}.

        is_left: whether another call is to go on. left, stayed: the sums of RemovalCounts over all calls of
        the run; runs/{run_id}/retain.json has them by the names of the rules.
        """
        run_id, is_left = event["run_id"], False
        earlier_calls, removals = self._state(run_id)
        active_rules = [rule for rule in self.rules if rule.days]
        fresh = curated_tasks(self.objects, run_id, event["tasks_key"]) if active_rules else []
        for rule in active_rules:
            retention_pass = RetentionPass(self.objects, rule, run_id, now.date(), fresh, has_time)
            is_finished = retention_pass.run()
            is_left = is_left or not is_finished
            removals[rule.name] = removals.get(rule.name, RemovalCounts()) + retention_pass.removals
        if active_rules:
            counts_by_rule = {name: asdict(counts) for name, counts in removals.items()}
            state = {"calls": earlier_calls + 1, "found": counts_by_rule}
            self.objects.put(run_key(run_id, STATE_NAME), json.dumps(state).encode())
        total = sum(removals.values(), RemovalCounts())
        return {"is_left": is_left and earlier_calls + 1 < CALLS_MAX, **asdict(total)}

    def _state(self, run_id: str) -> tuple[int, dict[str, RemovalCounts]]:
        """Return how many calls the run has made before this one, and what they have removed, by rule."""
        try:
            state = json.loads(self.objects.get(run_key(run_id, STATE_NAME)))
        except NoObject:
            return 0, {}
        return state["calls"], {name: RemovalCounts(**counts) for name, counts in state["found"].items()}


def retention_rules(config: OwnRetainSettings, dynamodb: Any) -> Iterator[RetentionRule]:
    """Yield a rule for each kind of data that leaves a table, with the days of its setting."""
    events = AgedItems(dynamodb, config.bp_events_table, ("user_id", "event_id"))
    yield Events(events, config.event_hot_days)
    for part in RETENTION_OF_PARTS:
        yield from part.rules(config, dynamodb)


RETENTION_OF_PARTS: list[PartRetention] = list(said("retention"))
RetainSettings = with_settings(OwnRetainSettings, *(part.settings for part in RETENTION_OF_PARTS))


@bootstrap(RetainSettings)
def _parts(config: OwnRetainSettings, client: ClientOf) -> RetainSteps:
    return RetainSteps(
        S3Objects(client("s3"), config.lake_bucket),
        list(retention_rules(config, client("dynamodb"))),
    )


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Lambda entry: {"run_id", "tasks_key"}; see RetainSteps.retain."""
    end = time.monotonic() + SECONDS_MAX
    answer = _parts().retain(event, clock.now(), lambda: time.monotonic() < end)
    metrics.add_metric("LeftTables", MetricUnit.Count, answer["left"])
    metrics.add_metric("StayedInTables", MetricUnit.Count, answer["stayed"])
    logger.info("done", extra={"run_id": event["run_id"], **answer})
    return {"run_id": event["run_id"], **answer}
