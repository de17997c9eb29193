"""What `streakline events replay` does with what a door refuses."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from local import replay
from local.replay import ReplayResult
from tests.unit.local.test_commands import DEAD, ended


@pytest.mark.parametrize(("kind", "file"), [("orders", "purchases.csv"), ("csv", "commits.csv")])
def test_what_is_refused_fails_the_command_and_stands_in_a_file(
    kind: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(stack: object, bodies: Sequence[Any]) -> ReplayResult:
        refused = [{"event": body, "result": "no"} for body in bodies[:2]]
        return ReplayResult(refused=refused)

    for name in ("post_events", "post_webhooks"):
        monkeypatch.setattr(replay, name, refuse)
    for name in ("drain", "drain_leads"):
        monkeypatch.setattr(replay, name, lambda stack: None)
    refused_file = tmp_path / "new" / "refused.ndjson"
    monkeypatch.setattr(replay, "REFUSED_FILE", refused_file)
    monkeypatch.setattr("local.stack.load", lambda: DEAD)
    assert ended(monkeypatch, "events", "replay", f"tests/data/{file}", "--format", kind) == (
        1,
        f"streakline: 2 refused, with reasons: {refused_file}",
    )
    assert [json.loads(line)["result"] for line in refused_file.read_text().splitlines()] == ["no", "no"]
