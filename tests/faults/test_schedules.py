"""Rules 7 and 11 under seeded fault schedules: 8 of the 10 in `make test`. SEED: replay just that one.

In 3 of them points are money: users do all that they do in the others, and hold, capture and expire, while books
are published. In 2 more (test_taken_back.py) they do all this, and things are bought and taken back.
"""

import os

import pytest

from tests.faults.invariants import violations
from tests.faults.money import money_violations
from tests.faults.simulation import Simulation
from tests.faults.spenders import Spenders
from tests.support.effort import effort
from tests.support.engine import Engine

GROUP = 5
SCHEDULES = effort(5, soak=2000)
MONEY = effort(3, soak=1000)
SEEDS = [int(os.environ["SEED"])] if "SEED" in os.environ else list(range(SCHEDULES))
MONEY_SEEDS = SEEDS if "SEED" in os.environ else list(range(MONEY))


def run(engine: Engine, seed: int, patch: pytest.MonkeyPatch) -> list[str]:
    """Run a schedule; returns what it violates."""
    with patch.context() as wiring:
        simulation = Simulation(engine, seed, wiring)
        simulation.run()
    return [
        each for user in simulation.users for each in violations(simulation.real, user, simulation.report)
    ]


def run_money(engine: Engine, seed: int, patch: pytest.MonkeyPatch) -> list[str]:
    """Run a schedule in which points are money; returns what it violates."""
    with patch.context() as wiring:
        schedule = Spenders(engine, seed, wiring)
        schedule.run()
    return [
        each
        for user in schedule.users
        for each in violations(schedule.real, user, schedule.report) + money_violations(schedule, user)
    ]


@pytest.mark.parametrize("first", SEEDS[::GROUP])
def test_rule_7_holds_after(first: int, environment: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in SEEDS[SEEDS.index(first) : SEEDS.index(first) + GROUP]:
        found = run(environment, seed, monkeypatch)
        assert not found, f"replay with SEED={seed} make test: {found}"


def test_a_seed_replays_exactly(environment: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def trace(seed: int) -> list[str]:
        with monkeypatch.context() as wiring:
            simulation = Simulation(environment, seed, wiring)
            simulation.run()
        return simulation.faults.trace

    assert trace(3) == trace(3)
    assert trace(3) != trace(4)


@pytest.mark.parametrize("first", MONEY_SEEDS[::GROUP])
def test_points_are_money_after(first: int, environment: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in MONEY_SEEDS[MONEY_SEEDS.index(first) : MONEY_SEEDS.index(first) + GROUP]:
        found = run_money(environment, seed, monkeypatch)
        assert not found, f"replay with SEED={seed} make test: {found}"
