"""Waits for work that others do, as long as it goes on and no longer: for queues, streams and leads of the
stack.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from local.cloud import poller
from local.paths import LOCAL
from local.stack import Stack

STALLED_SECONDS_MAX = 300.0
SAY_EVERY_SECONDS = 10.0


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # what a command answers is on the other


@dataclass(slots=True)
class Patience:
    """Ends when what it gets has not changed for so many seconds."""

    seconds: float = STALLED_SECONDS_MAX
    say: Callable[[str], object] = _print  # gets now and then how far it is
    elapsed: Callable[[], float] = time.monotonic  # seconds, from any beginning
    _seen: object = None
    _since: float | None = None
    _said: float = 0.0

    def wait(self, what: str, progress: object, pause: float) -> None:
        """Pause. Raises RuntimeError if there was no progress for too long.

        what: what is waited for, a sentence without its end. progress: another value whenever it goes on.
        """
        now = self.elapsed()
        if self._since is None:
            self._said = now
        if self._since is None or progress != self._seen:
            self._seen, self._since = progress, now
        elif now - self._since >= self.seconds:
            raise RuntimeError(f"{what} ({progress}), and nothing has happened for {self.seconds:.0f} s")
        if now - self._said >= SAY_EVERY_SECONDS:
            self.say(f"  {what} ({progress})")
            self._said = now
        time.sleep(pause)


WORK = ("LeadIngestion", "MemoryProcessing", "FeatureProcessing", "FeatureRefresh")
PAUSE_SECONDS = 0.1
# To be delivered, delivered or waiting, sent to be delivered later.
COUNTS = tuple(f"ApproximateNumberOfMessages{each}" for each in ("", "NotVisible", "Delayed"))


def depth(stack: Stack, url: str) -> int:
    """Return how many messages a queue holds, including those that a consumer is working on."""
    answer = stack.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=list(COUNTS))
    return sum(int(answer["Attributes"][name]) for name in COUNTS)


def failures(stack: Stack) -> dict[str, int]:
    """Return how many messages wait for an operator, by failure queue."""
    urls = {name: url for name, url in stack.outputs.items() if name.endswith("FailuresUrl")}
    return {name.removesuffix("Url"): depth(stack, url) for name, url in urls.items()}


def messages_waiting(stack: Stack) -> dict[str, int]:
    """Return how many messages wait for their consumer, by queue."""
    return {name: depth(stack, stack.outputs[f"{name}Url"]) for name in WORK}


def wait_until_empty(stack: Stack, names: Iterable[str], patience: Patience) -> None:
    """Wait until a consumer has done all that waits in these queues, one queue after the other.

    Raises RuntimeError when `patience` ends.
    """
    for name in names:
        while waiting := depth(stack, stack.outputs[f"{name}Url"]):
            patience.wait(f"messages still wait in {name}", waiting, PAUSE_SECONDS)


# On AWS counts of queues lag, and nobody sees the stream between them: they must stay empty for this long.
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
    wait_until_empty(stack, ("LeadIngestion",), Patience(stalled_max))
    await_stream(stack, "LeadEvents", Patience(stalled_max))
    wait_until_empty(
        stack, ("MemoryProcessing", "FeatureProcessing", "FeatureRefresh"), Patience(stalled_max)
    )


def _await_quiet(stack: Stack, patience: Patience) -> None:
    quiet_since = time.monotonic()
    while time.monotonic() < quiet_since + AWS_QUIET_SECONDS:
        waiting = messages_waiting(stack)
        if any(waiting.values()):
            quiet_since = time.monotonic()
        patience.wait("messages of leads still wait: see `streakline status`", waiting, AWS_PAUSE_SECONDS)


def await_stream(stack: Stack, consumer: str, patience: Patience) -> None:
    """Wait until the consumer of a stream has processed what is on it. Of the laptop cloud only.

    Raises RuntimeError when `patience` ends.
    """
    function, sent_at = stack.outputs[f"{consumer}FunctionName"], time.time()
    poller.ask(function, sent_at)
    while (state := state_of(function)).get("caught_up_at", 0.0) <= sent_at:
        patience.wait(f"waiting for {consumer}", f"{state.get('records', 0):,} records so far", PAUSE_SECONDS)


def state_of(function: str) -> dict[str, Any]:
    """Return what the poller reports of a function.

    caught_up_at: when it last had nothing left to do (epoch seconds). Its counts grow while it works.
    """
    try:
        found: dict[str, Any] = json.loads((LOCAL / "poller.json").read_text())[function]
    except (OSError, ValueError, KeyError):
        return {}
    return found
