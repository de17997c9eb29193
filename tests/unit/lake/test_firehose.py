"""As few calls as Firehose allows; what it refuses is sent again, and nothing else is."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.platform import publishing
from adapters.platform.publishing import DeliveryStream, stream_batches
from tests.support.firehose import Firehose


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "pauses", range)


@given(st.lists(st.integers(1, 3_000_000), max_size=40), st.integers(0, 1200))
def test_calls_hold_what_they_may_and_every_row_is_in_one(sizes: Sequence[int], small: int) -> None:
    rows: list[Any] = [range(size) for size in [*sizes, *[10] * small]]  # something with a length
    calls = list(stream_batches(rows))
    assert [place for call in calls for place in call] == list(range(len(rows)))
    for call in calls:
        assert 0 < len(call) <= 500
        assert len(call) == 1 or sum(len(rows[place]) for place in call) <= 4 * 1024 * 1024
    for call, after in pairwise(calls):
        total = sum(len(rows[place]) for place in [*call, after[0]])
        assert len(call) == 500 or total > 4 * 1024 * 1024, "a call that could have held more"


def test_only_what_was_refused_is_sent_again() -> None:
    rows = [b"a", b"b", b"c", b"d"]
    client = Firehose({b"b": 2, b"d": 1})
    assert DeliveryStream(client, "s").put(rows) == []
    assert client.calls == [rows, [b"b", b"d"], [b"b"]]
    assert sorted(client.taken) == rows


def test_what_is_refused_every_time_is_told() -> None:
    client = Firehose({b"b": 99})
    assert DeliveryStream(client, "s").put([b"a", b"b", b"c"]) == [1]
    assert len(client.calls) == publishing.ATTEMPTS_MAX
