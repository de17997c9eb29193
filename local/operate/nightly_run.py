"""Starts the nightly run by hand, watches the state machine, and fetches the report."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from local.stack import Stack

SECONDS_MAX = 1800
LAPTOP_POLL_SECONDS, AWS_POLL_SECONDS = 0.3, 5.0
BY_HAND = "by-hand"
DONE = ("SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED")


def _print(text: str) -> None:
    print(text, flush=True)


def start(
    stack: Stack,
    since: date | None,
    until: date | None,
    *,
    repair: bool,
    everybody: bool = False,
    entities: Sequence[str] = (),
    days: Mapping[str, Sequence[str]] | None = None,
    rebuild: bool = False,
    full: bool = False,
    name: str = BY_HAND,
) -> str:
    """Start a nightly run over the days `since` to `until` (both None: all that is new); returns its ARN.

    everybody: it looks closely at all accounts, also at those that look right. entities: only these are
    curated and loaded; none: all. days: of these, some dates by entity alone.
    rebuild: their files are made anew from all raw objects of these days.
    full: the warehouse's models are built anew, and all their rows tested.
    """
    wanted = {
        "from": since.isoformat() if since else None,
        "to": until.isoformat() if until else None,
        "repair": repair,
        "everybody": everybody,
        "entities": list(entities) or None,
        "days": days,
        "rebuild": rebuild,
        "full": full,
    }
    answer = stack.client("stepfunctions").start_execution(
        stateMachineArn=stack.outputs["NightlyArn"],
        name=f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%S%f}",
        input=json.dumps(wanted),
    )
    return str(answer["executionArn"])


def wait(
    stack: Stack, execution: str, seconds_max: float = SECONDS_MAX, say: Callable[[str], None] = _print
) -> str:
    """Wait for a nightly run to end, telling each step as it begins; returns its status.

    Raises RuntimeError if it takes longer than that. The run goes on.
    """
    states, shown, deadline = stack.client("stepfunctions"), 0, time.monotonic() + seconds_max
    while True:
        status = str(states.describe_execution(executionArn=execution)["status"])
        entered = _entered(states, execution)
        for name in entered[shown:]:
            say(f"  {name}")
        shown = len(entered)
        if status in DONE:
            return status
        if time.monotonic() > deadline:
            raise RuntimeError(f"{execution} has not ended in {seconds_max:.0f} s, and goes on")
        time.sleep(LAPTOP_POLL_SECONDS if stack.is_laptop else AWS_POLL_SECONDS)


def _entered(states: Any, execution: str) -> list[str]:
    pages = states.get_paginator("get_execution_history").paginate(executionArn=execution)
    return [
        event["stateEnteredEventDetails"]["name"]
        for page in pages
        for event in page["events"]
        if event["type"].endswith("StateEntered")
    ]


def report_of(stack: Stack, execution: str) -> dict[str, Any]:
    """Return a nightly run's report. A run that failed has one too."""
    key = f"reports/{execution.rpartition(':')[2]}.json"
    body = stack.client("s3").get_object(Bucket=stack.outputs["LakeBucketName"], Key=key)["Body"].read()
    report: dict[str, Any] = json.loads(body)
    return report


def run(
    stack: Stack,
    since: date | None = None,
    until: date | None = None,
    *,
    repair: bool = True,
    everybody: bool = False,
    entities: Sequence[str] = (),
    days: Mapping[str, Sequence[str]] | None = None,
    rebuild: bool = False,
    full: bool = False,
) -> dict[str, Any]:
    """Do a nightly run; returns its report. Raises RuntimeError, with what failed, if it failed."""
    more: dict[str, Any] = {
        "everybody": everybody,
        "entities": entities,
        "days": days,
        "rebuild": rebuild,
        "full": full,
    }
    execution = start(stack, since, until, repair=repair, **more)
    status = wait(stack, execution)
    if status != "SUCCEEDED":
        described = stack.client("stepfunctions").describe_execution(executionArn=execution)
        raise RuntimeError(f"the run {status.lower()}: {described.get('cause') or described.get('error')}")
    return report_of(stack, execution)
