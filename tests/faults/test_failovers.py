"""Rule 23 by simulation: a writer, a standby, promotions at random moments with both sides alive, and the return.

SEED: replay just that one. 4 failovers in `make test`, 2,000 in `make soak`.
"""

import os

import pytest

from tests.faults.regions.failover import Failover
from tests.faults.regions.failover_promises import failover_violations
from tests.support.effort import effort
from tests.support.engine import Engine

GROUP = 4
FAILOVERS = effort(4, soak=2000)
SEEDS = [int(os.environ["SEED"])] if "SEED" in os.environ else list(range(FAILOVERS))


def run(engines: tuple[Engine, Engine], seed: int, patch: pytest.MonkeyPatch) -> list[str]:
    """Run a schedule; returns what it violates."""
    with patch.context() as wiring:
        schedule = Failover(engines, seed, wiring)
        schedule.run()
        return failover_violations(schedule)


@pytest.mark.parametrize("first", SEEDS[::GROUP])
def test_nothing_is_lost_and_no_overdraft_is_unlisted_after(
    first: int, regions: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in SEEDS[SEEDS.index(first) : SEEDS.index(first) + GROUP]:
        found = run(regions, seed, monkeypatch)
        assert not found, f"replay with SEED={seed} make test: {found}"
