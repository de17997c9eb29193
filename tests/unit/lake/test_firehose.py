"""As few calls as Firehose allows; what it refuses is sent again, and nothing else is."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.platform import publishing
from adapters.platform.publishing import DeliveryStream, call_batches
from tests.support.firehose import Firehose


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "pauses", range)


@pytest.mark.parametrize(("count_max", "bytes_max"), [(500, 4 * 1024 * 1024), (10, 256 * 1024)])
@given(large=st.lists(st.integers(1, 3_000_000), max_size=40), small=st.integers(0, 1200))
def test_calls_hold_what_they_may_and_every_entry_is_in_one(
    large: Sequence[int], small: int, count_max: int, bytes_max: int
) -> None:
    sizes = [*large, *[10] * small]
    calls = list(call_batches(sizes, count_max, bytes_max))
    assert [index for call in calls for index in call] == list(range(len(sizes)))
    for call in calls:
        assert 0 < len(call) <= count_max
        assert len(call) == 1 or sum(sizes[index] for index in call) <= bytes_max
    for call, after in pairwise(calls):
        total = sum(sizes[index] for index in [*call, after[0]])
        assert len(call) == count_max or total > bytes_max, "a call that could have held more"


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
