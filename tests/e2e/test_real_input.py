"""A real history: every user's answers equal an independent calculation, however the events come in."""

from datetime import date
from pathlib import Path

import pytest

from local.api import Api
from local.event_sources import Body, from_csv
from local.replay import replay, shuffled
from local.stack import Stack
from local.verify import compare, expect
from tests.support.effort import only_soak
from tests.support.real_input import COMMITS

AS_OF = date(2026, 4, 8)

pytestmark = [
    pytest.mark.xdist_group("cloud"),
]


def history(path: Path, prefix: str) -> list[Body]:
    return [{**body, "user_id": f"{prefix}-{body['user_id']}"} for body in from_csv(path)]


@only_soak(
    "test_a_replay_waits_for_its_effects_and_verify_finds_them_right (tests/e2e/test_stack_by_name.py) for both doors,"
    " test_every_event_is_in_the_warehouse_once (tests/e2e/test_lake.py) for events that come shuffled and twice,"
    " test_the_code_and_the_oracle_agree_from (tests/oracle/test_rounds.py) for the answers"
)
def test_shuffled_sent_twice_and_through_both_doors(stack: Stack, user: str) -> None:
    everybody = history(COMMITS, user)
    outcome = replay(stack, shuffled(everybody * 2, seed=1), via="both")
    assert set(outcome.counts) == {"accepted", "duplicate", "sent"}
    assert compare(Api(stack), expect(everybody, AS_OF), AS_OF) == []
