"""How long a request asks to wait, and when one looks."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.engagement.waiting import READS_MAX, WAIT_SECONDS_MAX, seconds_to_wait, times_to_look


@pytest.mark.parametrize(
    ("prefer", "seconds"),
    [
        (None, 0),
        ("", 0),
        ("wait=2", 2),
        ("wait=1", 1),
        ("Wait = 1", 1),
        ('wait="2"', 2),
        ("respond-async, wait=1", 1),
        ("wait=1; reason=x, wait=2", 1),
        ("wait=0", 0),
        ("wait=86400", WAIT_SECONDS_MAX),
        ("wait=999999999999999999999", 0),
        ("wait=-1", 0),
        ("wait=1.5", 0),
        ("wait", 0),
        ("wait=", 0),
        ("wait=٢", 0),
        ("await=2", 0),
        ("return=minimal", 0),
    ],
)
def test_a_header_says_how_long_to_wait(prefer: str | None, seconds: int) -> None:
    assert seconds_to_wait(prefer) == seconds


@given(st.text(max_size=60))
def test_any_header_is_answered(prefer: str) -> None:
    assert 0 <= seconds_to_wait(prefer) <= WAIT_SECONDS_MAX


@pytest.mark.parametrize("slow", [0.0, 0.05, 0.4, 5.0])
def test_looks_are_few_and_end_in_time(monkeypatch: pytest.MonkeyPatch, slow: float) -> None:
    """slow: the seconds that each look takes."""
    clock = [0.0]

    def sleep(seconds: float) -> None:
        assert seconds > 0
        clock[0] += seconds

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", sleep)
    begun_at = list[float]()
    for _ in times_to_look(WAIT_SECONDS_MAX):
        begun_at.append(clock[0])
        clock[0] += slow
    assert 1 <= len(begun_at) <= READS_MAX
    assert begun_at[-1] <= WAIT_SECONDS_MAX + 1e-9
    if not slow:
        assert begun_at[-1] == pytest.approx(WAIT_SECONDS_MAX), "the last look is at the end"
        assert sum(at <= 0.3 for at in begun_at) >= 2, "the first ones come soon"
