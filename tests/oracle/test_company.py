"""Boards, leagues and friends of several users against the oracle, in rounds that seeds plan. COMPANY: just that one."""

import os

import pytest

from tests.oracle.company_plans import company_planned
from tests.oracle.company_rounds import company_played
from tests.oracle.machines import Stream
from tests.support.effort import effort
from tests.support.engine import Engine

GROUP = 4
ROUNDS = effort(4, soak=2000)
SEEDS = [int(os.environ["COMPANY"])] if "COMPANY" in os.environ else list(range(ROUNDS))


@pytest.mark.parametrize("first", SEEDS[::GROUP])
def test_the_code_and_the_oracle_agree_on_a_company_from(
    first: int, environment: Engine, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in SEEDS[SEEDS.index(first) : SEEDS.index(first) + GROUP]:
        plan = company_planned(seed)
        wrong = company_played(environment, stream, plan, monkeypatch)
        assert not wrong, f"replay with COMPANY={seed}: {wrong}\n{plan}"
