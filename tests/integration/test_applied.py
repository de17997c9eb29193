"""On AWS a replay waits until events are in their accounts: by what the tables say, on a real engine."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.platform.items import encode_item
from local.cloud import patience
from local.cloud.patience import wait_until_applied
from local.stack import Stack
from rules.engagement.events import Event
from tests.support.engine import TABLES, Engine
from tests.support.town import Town


@pytest.fixture
def town(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Town]:
    monkeypatch.setattr(patience, "AWS_PAUSE_SECONDS", 0.01)
    made = Town(engine.client("dynamodb"), tmp_path, f"applied{tmp_path.name[-8:]}", 3)
    yield made
    made.clear()


@pytest.fixture
def stack(engine: Engine) -> Any:
    return Stack("", engine.endpoint, "us-east-1", {}, {name: name for name in TABLES}, "")


def body(event: Event) -> dict[str, Any]:
    return {
        "user_id": event.user_id,
        "idempotency_key": event.idempotency_key,
        "occurred_at": event.occurred_at,
    }


def test_it_ends_when_all_are_applied(town: Town, stack: Stack) -> None:
    events = [town.event(user, number, number) for user in town.users for number in range(9)]
    town.apply(events)
    wait_until_applied(stack, map(body, events), stalled_max=0)


def test_an_event_that_is_in_no_account_is_waited_for(town: Town, stack: Stack) -> None:
    first, late, unsent = (town.event(town.users[0], number, 1) for number in range(3))
    town.apply([first])
    town.events.put([late])  # stored, and not applied
    for missing in (late, unsent):
        with pytest.raises(RuntimeError, match="some of 2 events are in no account"):
            wait_until_applied(stack, map(body, (first, missing)), stalled_max=0)
    town.apply([late])
    wait_until_applied(stack, map(body, (first, late)), stalled_max=0)


def test_an_entry_that_the_profile_has_not_counted_is_not_shown_yet(town: Town, stack: Stack) -> None:
    user = town.users[0]
    event = town.event(user, 0, 1)
    town.apply([event])
    shown = town.profile(user)
    town.put("UserStreaks", {**shown, **encode_item({"ledger_head": "2026-03-01T00:00:00.000000Z"})})
    with pytest.raises(RuntimeError, match="some of 1"):
        wait_until_applied(stack, [body(event)], stalled_max=0)
    town.put("UserStreaks", shown)
    wait_until_applied(stack, [body(event)], stalled_max=0)
