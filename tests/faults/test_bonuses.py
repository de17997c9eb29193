"""Bonuses (rule 15) under seeded fault schedules. SEED: replay just that one."""

import os

import pytest

from tests.faults.earners import Earners, bonus_violations
from tests.faults.invariants import violations
from tests.support.effort import effort
from tests.support.engine import Engine

GROUP = 4
SEEDS = [int(os.environ["SEED"])] if "SEED" in os.environ else list(range(effort(4, soak=1000)))


def run_bonuses(engine: Engine, seed: int, patch: pytest.MonkeyPatch) -> list[str]:
    """Run a schedule with a book that pays for achievements; returns what it violates."""
    with patch.context() as wiring:
        schedule = Earners(engine, seed, wiring)
        schedule.run()
    return [
        each
        for user in schedule.users
        for each in violations(schedule.real, user, schedule.report) + bonus_violations(schedule, user)
    ]


@pytest.mark.parametrize("first", SEEDS[::GROUP])
def test_bonuses_are_paid_once_after(
    first: int, environment: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in SEEDS[SEEDS.index(first) : SEEDS.index(first) + GROUP]:
        found = run_bonuses(environment, seed, monkeypatch)
        assert not found, f"replay with SEED={seed} make test: {found}"
