"""`streakline features`: features of leads, rebuilt from their stored events, and as of past instants."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click

from adapters.leads.feature_requests import FeatureQueue
from adapters.platform.tables import scan_all
from local.cloud import patience
from local.cloud.patience import Patience
from local.command import FILE, FILE_OUT, command, option
from local.stack import Stack
from local.stores import lake_of

SEGMENTS = 8  # of the Feature table, scanned side by side
QUEUE = "FeatureRefresh"  # by its name in the template
STALLED_SECONDS_MAX = 120.0


@command("features rebuild --dry-run", "features rebuild --lead 7fd0")
@option("--lead", "leads", multiple=True, metavar="ID", help="only this; repeatable", show_default="all")
@option("--dry-run", is_flag=True, help="count the leads, send nothing")
def rebuild_command(stack: Stack, leads: Sequence[str], dry_run: bool) -> Any:
    """Make features of leads anew from their stored events, and wait until that is done."""
    return rebuild_features(stack, leads, dry_run=dry_run)


@command("features training-set labels.parquet training.parquet --known-by")
@click.argument("labels", type=FILE)
@click.argument("out", type=FILE_OUT)
@option("--known-by", is_flag=True, help="leave out what arrived after the instant")
@option(
    "--organization",
    "organizations",
    multiple=True,
    metavar="ORG",
    help="for a caller of this organization, to whom leads of others are unknown; repeatable",
    show_default="all",
)
def training_set_command(
    *, stack: Stack, labels: Path, out: Path, known_by: bool, organizations: Sequence[str]
) -> Any:
    """Write labels with the features of their leads as of their instants.

    LABELS is Parquet: lead_organization_id, as_of, anything else. OUT is Parquet, too.
    """
    from analytics.leads.training_sets import training_set

    rows = training_set(
        lake_of(stack),
        labels,
        out,
        known_by=known_by,
        organizations=organizations or None,
        grace_days=int(stack.settings["CampaignGraceDays"]),
    )
    return {"rows": rows, "file": str(out)}


def rebuild_features(stack: Stack, leads: Sequence[str] = (), *, dry_run: bool = False) -> dict[str, int]:
    """Rebuild the features of some leads (none: all) from their stored events, and wait until that is done.

    It sends the leads' ids to the queue of refreshes, and the deployed processor does the work: it reads each
    lead's events once, and writes only what differs, on condition that nobody has changed the lead meanwhile.
    So it may run twice, or while events arrive. Memory is not touched.

    dry_run: count the leads and send nothing.
    Returns how many `leads` and `messages` were sent, and `failures`: how many messages wait for an operator
    in the queue of failures, older ones among them. Raises RuntimeError when nothing has happened for 120 s.
    """
    queue = FeatureQueue(stack.client("sqs"), stack.output(f"{QUEUE}Url", "leads"))

    def request(some_leads: Iterable[str]) -> tuple[int, int]:
        """Return how many leads these are, and in how many messages their ids were sent."""
        return (sum(1 for _ in some_leads), 0) if dry_run else queue.request_rebuild(some_leads)

    if leads:
        lead_count, messages = request(list(dict.fromkeys(leads)))
    else:
        segments = (leads_to_rebuild(stack, segment) for segment in range(SEGMENTS))
        with ThreadPoolExecutor(SEGMENTS) as pool:
            lead_count, messages = map(sum, zip(*pool.map(request, segments), strict=True))
    if messages:
        patience.wait_until_empty(stack, (QUEUE,), Patience(STALLED_SECONDS_MAX))
    failures = patience.depth(stack, stack.outputs["FeatureFailuresUrl"])
    return {"leads": lead_count, "messages": messages, "failures": failures}


def leads_to_rebuild(stack: Stack, segment: int) -> Iterator[str]:
    """Yield the leads of a segment of the Feature table that have features: none has been merged away."""
    items = scan_all(
        stack.client("dynamodb"),
        TableName=stack.tables["Feature"],
        Segment=segment,
        TotalSegments=SEGMENTS,
        ProjectionExpression="lead_organization_id",
        FilterExpression="attribute_not_exists(merged_into)",
    )
    return (item["lead_organization_id"]["S"] for item in items)
