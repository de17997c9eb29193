"""The real code against the oracle, in rounds that seeds plan: 20, in `make soak` 5,000. ROUND: just that one."""

import os

import pytest

from tests.oracle.machines import Stream
from tests.oracle.plans import planned
from tests.oracle.rounds import played
from tests.support.effort import effort
from tests.support.engine import Engine

GROUP = 20
ROUNDS = effort(20, soak=5000)
SEEDS = [int(os.environ["ROUND"])] if "ROUND" in os.environ else list(range(ROUNDS))


@pytest.mark.parametrize("first", SEEDS[::GROUP])
def test_the_code_and_the_oracle_agree_from(
    first: int, environment: Engine, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in SEEDS[SEEDS.index(first) : SEEDS.index(first) + GROUP]:
        plan = planned(seed)
        wrong = played(environment, stream, plan, monkeypatch)
        assert not wrong, f"replay with ROUND={seed}: {wrong}\n{plan}"
