"""An outage is forgiven on the deployed cloud, by the command line (rule 17)."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from local.api import Api
from local.stack import Stack
from tests.e2e.conftest import event, is_indexed, printed

pytestmark = pytest.mark.xdist_group("cloud")


def amnesty(*words: str) -> str:
    return printed("amnesty", *words)


def test_a_listed_user_gets_the_streak_back_and_loses_it_when_it_is_revoked(
    stack: Stack, me: Api, user: str, tmp_path: Path, settled: Callable[..., None]
) -> None:
    now = datetime.now(UTC)
    three, two, one = (now - timedelta(hours=hours) for hours in (71, 47, 23))
    sent = [{**event(user, key), "occurred_at": at.isoformat()} for key, at in (("a", three), ("b", one))]
    assert me.call("POST", "/v1/events", {"events": sent})[1]["accepted"] == len(sent)
    settled(user)
    assert me.get(f"/v1/users/{user}")["current_streak"] == 1

    users = tmp_path / "users.txt"
    users.write_text(f"{user}\nnobody-{user}\n")
    end = two + timedelta(microseconds=1)
    said = ("--from", two.isoformat(), "--to", end.isoformat(), "--reason", "away", "--users", str(users))
    tried = amnesty("declare", *said, "--dry-run")
    assert "2 users looked at; 1 would be changed" in tried
    assert me.get(f"/v1/users/{user}")["current_streak"] == 1
    assert "streak 1 -> 2" in amnesty("declare", *said)
    assert me.get(f"/v1/users/{user}")["current_streak"] == 2
    why = me.get(f"/v1/users/{user}/streak/explain?date={two.date()}")
    listed: list[dict[str, Any]] = json.loads(amnesty("list", "--json"))
    assert (why["reason"], why["amnesty"]) == ("amnesty", listed[-1]["number"])
    number = str(listed[-1]["number"])
    assert is_indexed(stack, user), "operators' commands leave users in StreakLeaderboard"
    assert "0 changed" in amnesty("apply", number, "--users", str(users))
    assert "streak 2 -> 1" in amnesty("revoke", number, "--users", str(users))
    assert me.get(f"/v1/users/{user}")["current_streak"] == 1
