"""Waits until everything that was sent has been processed."""

import json
import time

from local.cloud import queue_counts
from local.paths import LOCAL
from local.stack import Stack

DRAIN_SECONDS_MAX = 300
# On AWS counts of queues lag, and nobody sees the stream between them: they must stay empty for so long.
AWS_QUIET_SECONDS = 20
AWS_PAUSE_SECONDS = 2


def drain(stack: Stack, seconds_max: float = DRAIN_SECONDS_MAX, *, lake: bool = False) -> None:
    """Wait until every consumer has processed what was sent before. Raises RuntimeError if it takes too long.

    Of the laptop cloud only, whose poller says how far each consumer is. lake: wait until all of it is in the
    lake, too.
    """
    deadline = time.monotonic() + seconds_max
    for consumer in ("EventsStream", "Engagement", *(("Publisher",) if lake else ())):
        _await_stream(stack, consumer, deadline)


def drain_leads(stack: Stack, seconds_max: float = DRAIN_SECONDS_MAX) -> None:
    """Wait until everything sent to the leads' doors has been processed. Raises RuntimeError on timeout."""
    deadline = time.monotonic() + seconds_max
    if not stack.is_laptop:
        _await_quiet(stack, deadline)
        return
    queue_counts.wait_until_empty(stack, ("LeadIngestion",), deadline)
    _await_stream(stack, "LeadEvents", deadline)
    queue_counts.wait_until_empty(stack, ("MemoryProcessing", "FeatureProcessing"), deadline)


def _await_quiet(stack: Stack, deadline: float) -> None:
    quiet_since = time.monotonic()
    while time.monotonic() < quiet_since + AWS_QUIET_SECONDS:
        if any(queue_counts.waiting(stack).values()):
            quiet_since = time.monotonic()
        if time.monotonic() > deadline:
            raise RuntimeError("messages of leads still wait, and the time is up: see `streakline status`")
        time.sleep(AWS_PAUSE_SECONDS)


def _await_stream(stack: Stack, consumer: str, deadline: float) -> None:
    function, sent_at = stack.outputs[f"{consumer}FunctionName"], time.time()
    while caught_up_at(function) <= sent_at:
        _pause(f"{function} has not caught up", deadline)


def _pause(what: str, deadline: float) -> None:
    if time.monotonic() > deadline:
        raise RuntimeError(f"{what}, and the time is up")
    time.sleep(0.1)


def caught_up_at(function: str) -> float:
    """Return when a function last had nothing left to do (epoch seconds); 0 if it never had."""
    try:
        return float(json.loads((LOCAL / "poller.json").read_text())[function]["caught_up_at"])
    except (OSError, ValueError, KeyError):
        return 0.0
