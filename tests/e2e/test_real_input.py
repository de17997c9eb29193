"""A real history: every user's answers equal an independent calculation, however the events come in.

`make soak` and `make demo` take all of it, `make test` every twenty-fourth user.
"""

from datetime import date
from pathlib import Path

import pytest

from local.api import Api
from local.event_sources import Body, from_csv
from local.replay import replay, shuffled
from local.stack import Stack
from local.verify import compare, expect
from tests.support.effort import effort
from tests.support.real_input import COMMITS

AS_OF = date(2026, 4, 8)

pytestmark = [
    pytest.mark.xdist_group("cloud"),
]


def history(path: Path, prefix: str) -> list[Body]:
    return [{**body, "user_id": f"{prefix}-{body['user_id']}"} for body in from_csv(path)]


def test_shuffled_sent_twice_and_through_both_doors(stack: Stack, user: str) -> None:
    everybody = history(COMMITS, user)
    users = set(sorted({each["user_id"] for each in everybody})[:: effort(24, soak=1)])
    events = [each for each in everybody if each["user_id"] in users]
    outcome = replay(stack, shuffled(events * 2, seed=1), via="both")
    assert set(outcome.counts) == {"accepted", "duplicate", "sent"}
    assert compare(Api(stack), expect(events, AS_OF), AS_OF) == []
