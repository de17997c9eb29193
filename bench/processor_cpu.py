"""CPU an event of the engagement processor, compared with the usual handler (bench/naive.py).

Batches of 100 stream records of users with open accounts and activity on the date already. Both get answers
that were given before: they pay for building, signing and parsing requests, neither for network or engine.
"""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib import import_module
from statistics import median
from typing import Any

from bench.counting.desk import CONTEXT, Desk, desk
from bench.counting.requests import bodies, logged
from bench.deployed import handler_modules
from bench.figure import Figure, ratio
from bench.units.engagement import DAY, USER_ID, post
from bench.units.naive import naive_at, records_of

BATCH = 100
BUDGETS = {5: 0.25, 20: 0.10}  # by events of a user in a batch
ROUNDS, REPEAT = 5, 2
HALF_HOUR = timedelta(minutes=30)


def run() -> Iterator[Figure]:
    """Yield the ratios."""
    for per_user, budget in BUDGETS.items():
        with desk() as made:
            who = [USER_ID.format(number) for number in range(BATCH // per_user)]
            ours, naive = _ours(made, who, per_user), _naive(made, who, per_user)
            made.meter.is_paused = True
            pairs = [(_cpu(ours), _cpu(naive)) for _ in range(ROUNDS + 1)][1:]
        mine, theirs = [each for each, _ in pairs], [each for _, each in pairs]
        detail = f"{median(mine) * 1e6:.0f} against {median(theirs) * 1e6:.0f} us an event"
        yield ratio(
            f"processor CPU, {per_user} a user and batch, of naive", mine, theirs, "<=", budget, detail
        )


def _cpu(handler: Callable[[], Any]) -> float:
    started = time.process_time()
    for _ in range(REPEAT):
        handler()
    return (time.process_time() - started) / REPEAT / BATCH


def _replayed(made: Desk, act: Callable[[], Any]) -> Callable[[], Any]:
    """Do something once, on the engine; return what does it again with the same answers."""
    made.services.kept = []
    act()
    answers, made.services.kept = made.services.kept, None

    def again() -> None:
        made.services.replayed = iter(answers)
        act()
        assert next(made.services.replayed, None) is None, "it makes the same requests"
        made.services.replayed = None

    return again


def _ours(made: Desk, who: list[str], per_user: int) -> Callable[[], Any]:
    """Return the processor's work on a batch of users who have checked in on the date."""
    module = import_module(handler_modules()["EngagementFunction"])
    post(made, bodies(who, 1, made.now - HALF_HOUR))
    made.tick(DAY)
    post(made, bodies(who, 1, made.now - 4 * HALF_HOUR, "CHECK_IN"))
    made.tick(HALF_HOUR)
    post(made, bodies(who, per_user, made.now - HALF_HOUR), applies=False)
    records = made.records("EngagementFunction", "BPEvents")
    assert len(records) == BATCH

    def handle() -> None:
        with logged(module):
            assert module.handler({"Records": records}, CONTEXT) == {"batchItemFailures": []}

    return _replayed(made, handle)


def _naive(made: Desk, who: list[str], per_user: int) -> Callable[[], Any]:
    naive = naive_at(made)
    for count in (1, per_user):
        ids = [(body, naive.ingest(body, made.now)) for body in bodies(who, count, made.now - HALF_HOUR)]
        event = {"Records": records_of(made, ids)}
        if count == 1:
            naive.handler(event)
        made.tick(HALF_HOUR)
    return _replayed(made, lambda: naive.handler(event))
