"""The Data API makes its callers wait: a database that wakes up, calls that are throttled."""

import logging
from types import SimpleNamespace

import pytest

from adapters.postgresql.rds_data import WAKING, WAKING_PAUSES_SECONDS
from adapters.postgresql.sql import PostgresUnavailable
from rules.leads.identity import Identity
from tests.support.identity_server import NOW, Registry

pytestmark = [
    pytest.mark.xdist_group("identity"),
    pytest.mark.parametrize("registry", ["data_api"], indirect=True),
]
A, B, C = (Identity("email", f"{name}@x") for name in "abc")


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What was waited, in seconds, without waiting. Time goes on by it."""
    waited: list[float] = []
    clock = SimpleNamespace(sleep=waited.append, monotonic=lambda: 1000 + sum(waited))
    # The module's name for `time`, and not time.sleep itself: others in this process wait too.
    monkeypatch.setattr("adapters.platform.aws.time", clock)
    monkeypatch.setattr("adapters.postgresql.rds_data.time", clock)
    return waited


def test_a_database_that_wakes_up_is_waited_for_and_told_of_once(
    registry: Registry, slept: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    registry.counting.api.sleep(4)
    assert registry.see(A).lead_id == 1
    assert slept == list(WAKING_PAUSES_SECONDS[:4])
    told = [each.message for each in caplog.records if each.levelno == logging.WARNING]
    assert told == [WAKING]
    assert WAKING.startswith("the identity database is waking up: nothing is lost")


def test_a_database_that_does_not_wake_up_is_waited_for_a_minute(
    registry: Registry, slept: list[float]
) -> None:
    registry.counting.api.sleep(len(WAKING_PAUSES_SECONDS) + 1)
    with pytest.raises(PostgresUnavailable, match="is resuming"):
        registry.see(A)
    assert sum(slept) == 60
    assert registry.see(A).lead_id == 1  # awake by now


def test_throttled_calls_are_made_again_and_work_is_not(registry: Registry, slept: list[float]) -> None:
    registry.see(A)
    registry.see(B)
    number = registry.see(A, B).changes[0].number
    registry.counting.api.refusals += [("ThrottlingException", "Rate exceeded")] * 3
    registry.store.unmerge(None, number, "why", "me", NOW)
    assert len(slept) == 3
    registry.counting.api.refusals += [("ThrottlingException", "Rate exceeded")] * 6
    with pytest.raises(PostgresUnavailable, match="ThrottlingException: Rate exceeded"):
        registry.see(C)
