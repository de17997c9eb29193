"""CPU an event of the engagement processor, compared with the usual design (bench/naive.py).

Batches have 100 stream records of users with open accounts and activity on the date already. Both designs get
recorded answers: so they pay for building, signing and parsing requests, but not for network or engine.
"""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib import import_module
from statistics import median

from bench.counting.desk import CONTEXT, Desk, desk
from bench.counting.requests import bodies, captured_logs
from bench.deployed import handler_modules
from bench.figure import Figure, ratio
from bench.naive import ingest_as_records, naive_at
from bench.units.engagement import DAY, USER_ID, apply_posted, post_events

BATCH_EVENTS = 100
BUDGETS = {5: 0.25, 20: 0.10}  # by events of a user in a batch
ROUNDS, REPETITIONS = 5, 2
HALF_HOUR = timedelta(minutes=30)


def run() -> Iterator[Figure]:
    """Yield one ratio for each number of events of a user."""
    for per_user, budget in BUDGETS.items():
        with desk() as both:
            users = [USER_ID.format(number) for number in range(BATCH_EVENTS // per_user)]
            handle_ours, handle_naive = _ours(both, users, per_user), _naive(both, users, per_user)
            both.meter.is_paused = True
            rounds = [(_cpu_an_event(handle_ours), _cpu_an_event(handle_naive)) for _ in range(ROUNDS + 1)]
        ours, naive = zip(*rounds[1:], strict=True)  # the first round fills caches
        detail = f"{median(ours) * 1e6:.0f} against {median(naive) * 1e6:.0f} us an event"
        yield ratio(
            f"processor CPU, {per_user} a user and batch, of naive", ours, naive, "<=", budget, detail
        )


def _cpu_an_event(handle: Callable[[], None]) -> float:
    start = time.process_time()
    for _ in range(REPETITIONS):
        handle()
    return (time.process_time() - start) / REPETITIONS / BATCH_EVENTS


def _ours(desk: Desk, users: list[str], per_user: int) -> Callable[[], None]:
    """Return the processor's work on a batch of users who have checked in on the date."""
    module = import_module(handler_modules()["EngagementFunction"])
    apply_posted(desk, bodies(users, 1, desk.now - HALF_HOUR))
    desk.tick(DAY)
    apply_posted(desk, bodies(users, 1, desk.now - 4 * HALF_HOUR, "CHECK_IN"))
    desk.tick(HALF_HOUR)
    post_events(desk, bodies(users, per_user, desk.now - HALF_HOUR))
    records = desk.take_records("EngagementFunction", "BPEvents")
    assert len(records) == BATCH_EVENTS

    def handle() -> None:
        with captured_logs(module):
            assert module.handler({"Records": records}, CONTEXT) == {"batchItemFailures": []}

    return _with_recorded_answers(desk, handle)


def _naive(desk: Desk, users: list[str], per_user: int) -> Callable[[], None]:
    """Return the usual design's work on a batch of users with one event on the date."""
    naive = naive_at(desk)
    first = ingest_as_records(desk, naive, bodies(users, 1, desk.now - HALF_HOUR))
    naive.handler({"Records": first})
    desk.tick(HALF_HOUR)
    batch = ingest_as_records(desk, naive, bodies(users, per_user, desk.now - HALF_HOUR))
    desk.tick(HALF_HOUR)
    return _with_recorded_answers(desk, lambda: naive.handler({"Records": batch}))


def _with_recorded_answers(desk: Desk, handle: Callable[[], None]) -> Callable[[], None]:
    """Handle a batch once on the engine; return what handles it again with the answers that it got."""
    services = desk.services
    services.recording = []
    handle()
    answers, services.recording = services.recording, None

    def handle_again() -> None:
        services.replay = iter(answers)
        handle()
        assert next(services.replay, None) is None, "it makes the same requests"
        services.replay = None

    return handle_again
