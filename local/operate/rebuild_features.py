"""streakline rebuild features: makes the live features of all leads what their stored events say.

It sends the leads' ids to the feature-refresh queue, and the deployed processor does the work. The
processor reads each lead's events once and writes only what differs, on condition that nobody has changed the
lead meanwhile. So it is safe to run this twice, or while events arrive. Memory is not touched.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from adapters.leads.feature_store import FeatureQueue
from local.cloud import patience
from local.cloud.patience import Patience
from local.stack import Stack

SEGMENTS = 8
QUEUE = "FeatureRefresh"
STALLED_SECONDS_MAX = 120.0


def rebuild(stack: Stack, leads: Sequence[str] = (), *, dry_run: bool = False) -> dict[str, int]:
    """Rebuild some leads (none: all), and wait until the queue is empty; returns counts.

    failures: how many messages wait for an operator in the queue of those that failed, older ones among them.
    dry_run: count the leads and send nothing. Raises RuntimeError when nothing has happened for 120 s.
    """
    parts = [list(dict.fromkeys(leads))] if leads else [leads_of(stack, each) for each in range(SEGMENTS)]
    queue = FeatureQueue(stack.client("sqs"), stack.outputs[f"{QUEUE}Url"])

    def send(part: Iterable[str]) -> tuple[int, int]:
        return (sum(1 for _ in part), 0) if dry_run else queue.request_rebuild(part)

    with ThreadPoolExecutor(SEGMENTS) as pool:
        asked, messages = map(sum, zip(*pool.map(send, parts), strict=True))
    if messages:
        patience.wait_until_empty(stack, (QUEUE,), Patience(STALLED_SECONDS_MAX))
    failures = patience.depth(stack, stack.outputs["FeatureFailuresUrl"])
    return {"leads": asked, "messages": messages, "failures": failures}


def leads_of(stack: Stack, segment: int) -> Iterator[str]:
    """Yield the leads in a segment of the Feature table, but for absorbed ones: these have no features."""
    pages = (
        stack.client("dynamodb")
        .get_paginator("scan")
        .paginate(
            TableName=stack.tables["Feature"],
            Segment=segment,
            TotalSegments=SEGMENTS,
            ProjectionExpression="lead_organization_id",
            FilterExpression="attribute_not_exists(merged_into)",
        )
    )
    for page in pages:
        yield from (each["lead_organization_id"]["S"] for each in page["Items"])
