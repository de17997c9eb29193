"""An admin asks the deployed cloud what another book would have led to: it answers as the command does."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from local.api import Api
from local.cloud.patience import drain
from local.operate import nightly_run
from local.stack import Stack
from local.what_if import what_if_command
from tests.e2e.conftest import event, printed

pytestmark = pytest.mark.xdist_group("cloud")
PATH = "/v1/rules/what-ifs"
FINISHED_WITHIN_SECONDS = 300


def finished(admin: Api, what_if_id: str) -> dict[str, Any]:
    until = time.monotonic() + FINISHED_WITHIN_SECONDS
    while (told := admin.get(f"{PATH}/{what_if_id}"))["status"] == "running":
        assert time.monotonic() < until, "it is not worked out"
        time.sleep(1)
    assert told["status"] == "finished", told
    return dict(told)


def test_the_report_is_what_the_command_prints(
    stack: Stack,
    admin: Api,
    me: Api,
    user: str,
    settled: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    today = datetime.now(UTC).date()
    events = [
        {
            **event(user, f"lesson-{number}"),
            "event_type": "LESSON_COMPLETED",
            "occurred_at": (datetime.now(UTC) - timedelta(minutes=number)).isoformat(),
        }
        for number in range(3)
    ]
    assert me.call("POST", "/v1/events", {"events": events})[0] == 202
    settled(user)
    drain(stack, lake=True)
    nightly_run.run(stack, today - timedelta(days=1), today)
    book = admin.get("/v1/rules")["book"]
    book["event_types"]["LESSON_COMPLETED"] = {"points": 12, "cap": {"points": 24, "per": "day"}}
    question = {"book": book, "from": (today - timedelta(days=2)).isoformat()}
    status, told = admin.call("POST", PATH, question)
    assert (status, told["status"]) == (202, "running")
    assert me.call("POST", PATH, question)[0] == 403
    assert me.call("GET", f"{PATH}/{told['what_if_id']}")[0] == 403
    report = finished(admin, told["what_if_id"])["report"]
    (change,) = (each for each in report["largest_changes"] if each["user_id"] == user)
    assert (change["earned_before"], change["earned_after"]) == (30, 24)

    class AsOf(datetime):
        """The clock of the command, which asks as of the same instant."""

        @classmethod
        def now(cls, tz: Any = None) -> "AsOf":
            return cls.fromisoformat(report["as_of"])

    monkeypatch.setattr(what_if_command, "datetime", AsOf)
    file = tmp_path / "book.json"
    file.write_text(json.dumps(book))
    text = printed("rules", "what-if", str(file), "--from", question["from"], "--json")
    assert json.loads(text) == {**report, "book": file.name}
