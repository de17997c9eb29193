"""Rule 7 under seeded fault schedules: 60 in `make test`, 5,000 in `make soak`. SEED: replay just that one."""

import os

import pytest

from tests.faults.invariants import violations
from tests.faults.simulation import Simulation
from tests.support.effort import effort
from tests.support.engine import Engine

GROUP = 10
SCHEDULES = effort(60, soak=5000)
SEEDS = [int(os.environ["SEED"])] if "SEED" in os.environ else list(range(SCHEDULES))


def run(engine: Engine, seed: int, patch: pytest.MonkeyPatch) -> list[str]:
    """Run a schedule; returns what it violates."""
    with patch.context() as wiring:
        simulation = Simulation(engine, seed, wiring)
        simulation.run()
    return [
        each for user in simulation.users for each in violations(simulation.real, user, simulation.report)
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
