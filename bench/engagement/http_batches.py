"""Events a second through HTTP, from the first post to the last effect, on the laptop cloud.

Batches of 100 events are compared with single events, sent by as many posters. Each user sends the 20 events
of a day, like an app that was offline. The benchmark uses the cloud that is up, or starts one and stops it
again.
"""

import contextlib
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from unittest import mock
from uuid import uuid4

from bench.engagement.workload import bodies
from bench.figure import Figure
from local import replay
from local.cloud import laptop_cloud, patience
from local.cloud.patience import Patience
from local.cloud.processes import pid_of
from local.event_sources import Body
from local.paths import STACK
from local.stack import Stack, load

BATCHED, SINGLE, BATCH = 2_000, 200, 100
PER_USER = 20
BUDGET = 10.0
DRAIN_SECONDS_MAX = 120


def run() -> Iterator[Figure]:
    """Yield the ratio of one poster, who waits for each answer, and for comparison of several at a time."""
    with _cloud() as stack:
        for batch in (BATCH, 1):  # a first time, unmeasured, so that the functions' processes are started
            _events_per_second(stack, 4 * batch + 20, batch)
        for posters, budget in ((1, BUDGET), (replay.POSTERS, None)):
            with mock.patch.object(replay, "POSTERS", posters):
                yield _figure(stack, posters, budget)


def _figure(stack: Stack, posters: int, budget: float | None) -> Figure:
    """Measure single events before and after batches, so that a machine that slows down favours neither."""
    before = _events_per_second(stack, SINGLE, 1)
    batched = _events_per_second(stack, BATCHED, BATCH)
    single = (before + _events_per_second(stack, SINGLE, 1)) / 2
    claim = f"events/s through HTTP, 100 to 1, {posters} at a time"
    detail = f"{batched:.0f} against {single:.0f} events/s"
    return Figure(claim, batched / single, ">=", budget, detail)


@contextlib.contextmanager
def _cloud() -> Iterator[Stack]:
    if STACK.exists() and all(map(pid_of, laptop_cloud.PROCESSES)):
        yield load()
        return
    try:
        yield laptop_cloud.up()
    finally:
        laptop_cloud.down()


def _events_per_second(stack: Stack, events: int, batch: int) -> float:
    sent = _events(events)
    started = time.monotonic()
    outcome = replay.post_events(stack, sent, batch)
    assert outcome.counts == {"accepted": events}, outcome.counts
    # The Kinesis door has no part in this.
    patience.await_stream(stack, "Engagement", Patience(DRAIN_SECONDS_MAX))
    return events / (time.monotonic() - started)


def _events(number: int) -> list[Body]:
    """Return events of users new to the stack, user by user."""
    who = [f"bench-{uuid4()}" for _ in range(-(-number // PER_USER))]
    return bodies(who, PER_USER, datetime.now(UTC) - timedelta(hours=1))[:number]
