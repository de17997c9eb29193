"""Waits until everything that was sent has been processed."""

import json
import time
from typing import Any

from local.cloud import queue_counts
from local.cloud.patience import STALLED_SECONDS_MAX, Patience
from local.cloud.streams import resting
from local.paths import LOCAL
from local.stack import Stack

PAUSE_SECONDS = 0.1
# On AWS counts of queues lag, and nobody sees the stream between them: they must stay empty for so long.
AWS_QUIET_SECONDS = 20
AWS_PAUSE_SECONDS = 2


def drain(stack: Stack, stalled_max: float = STALLED_SECONDS_MAX, *, lake: bool = False) -> None:
    """Wait until every consumer has processed what was sent before.

    Of the laptop cloud only, whose poller says how far each consumer is. lake: wait until all of it is in the
    lake, too. Raises RuntimeError when nothing has happened for `stalled_max` seconds.
    """
    for consumer in ("EventsStream", "Engagement", *(("Publisher",) if lake else ())):
        await_stream(stack, consumer, Patience(stalled_max))


def drain_leads(stack: Stack, stalled_max: float = STALLED_SECONDS_MAX) -> None:
    """Wait until everything sent to the leads' doors has been processed.

    Raises RuntimeError when nothing has happened for `stalled_max` seconds.
    """
    if not stack.is_laptop:
        _await_quiet(stack, Patience(stalled_max))
        return
    queue_counts.wait_until_empty(stack, ("LeadIngestion",), Patience(stalled_max))
    await_stream(stack, "LeadEvents", Patience(stalled_max))
    queue_counts.wait_until_empty(
        stack, ("MemoryProcessing", "FeatureProcessing", "FeatureRefresh"), Patience(stalled_max)
    )


def _await_quiet(stack: Stack, patience: Patience) -> None:
    quiet_since = time.monotonic()
    while time.monotonic() < quiet_since + AWS_QUIET_SECONDS:
        waiting = queue_counts.waiting(stack)
        if any(waiting.values()):
            quiet_since = time.monotonic()
        patience.wait("messages of leads still wait: see `streakline status`", waiting, AWS_PAUSE_SECONDS)


def await_stream(stack: Stack, consumer: str, patience: Patience) -> None:
    """Wait until the consumer of a stream has processed what is on it. Of the laptop cloud only.

    Raises RuntimeError when `patience` ends.
    """
    function, sent_at = stack.outputs[f"{consumer}FunctionName"], time.time()
    resting.ask(function, sent_at)
    while (state := state_of(function)).get("caught_up_at", 0.0) <= sent_at:
        patience.wait(f"{function} has not caught up", f"{state.get('records', 0)} records", PAUSE_SECONDS)


def state_of(function: str) -> dict[str, Any]:
    """Return what the poller tells of a function.

    caught_up_at: when it last had nothing left to do (epoch seconds). Its counts grow while it works.
    """
    try:
        found: dict[str, Any] = json.loads((LOCAL / "poller.json").read_text())[function]
    except (OSError, ValueError, KeyError):
        return {}
    return found
