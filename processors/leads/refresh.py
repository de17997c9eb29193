"""Every morning: puts the active leads on the feature-refresh queue.

Time alone changes some of their features: `days_since_last_purchase` grows every date.
"""

from dataclasses import dataclass
from typing import Any

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.leads.feature_requests import FeatureQueue
from adapters.leads.feature_store import ActiveLeads
from adapters.logs import Logger
from rules.days import parse_moment, stamp
from rules.leads.feature_changes import AHEAD_MAX

logger = Logger(service="refresh")


@dataclass(frozen=True, slots=True)
class RefreshSettings:
    """Leads are put on the queue at feature_queue_url."""

    feature_table: str
    feature_queue_url: str
    feature_shards: int


@bootstrap(RefreshSettings)
def _parts(config: RefreshSettings, client: ClientOf) -> tuple[ActiveLeads, FeatureQueue]:
    leads = ActiveLeads(client("dynamodb"), config.feature_table, config.feature_shards)
    return leads, FeatureQueue(client("sqs"), config.feature_queue_url)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a schedule. as_of: an RFC 3339 instant; by default now. Raises ValueError for a bad one.

    A second run for the same instant changes nothing, because the stored features are not older than that.
    """
    leads, queue = _parts()
    now = clock.now()
    moment = parse_moment(event["as_of"]).utc if event.get("as_of") else now
    as_of = stamp(moment)
    if moment > now + AHEAD_MAX:  # features only go forward, so they would never be right again
        raise ValueError(f"as_of {as_of} is after {stamp(now + AHEAD_MAX)}")
    asked, messages = queue.request_refresh(as_of, leads.ids())
    logger.info("refresh", extra={"as_of": as_of, "leads": asked, "messages": messages})
    return {"as_of": as_of, "leads": asked, "messages": messages}
