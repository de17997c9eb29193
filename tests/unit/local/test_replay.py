"""What `streakline events replay` does with what a door refuses."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from local import replay
from local.replay import ReplayResult
from tests.unit.local.test_commands import DEAD, ended

BODIES = [{"user_id": f"user-{number}", "idempotency_key": str(number)} for number in range(5)]


class BusyDoor:
    """A stack whose stream and queue refuse the first record of so many calls."""

    outputs: ClassVar = {"LeadIngestionUrl": "http://queue"}

    def __init__(self, refusals: int) -> None:
        self.refusals_left = refusals
        self.taken: list[str] = []

    def client(self, service: str) -> Any:
        assert service in ("kinesis", "sqs")
        return self

    def output(self, name: str, part: str) -> str:
        return f"{part}: {name}"

    def put_records(self, StreamName: str, Records: Sequence[Any]) -> Any:  # noqa: N803
        refused = self._take([record["Data"].decode() for record in Records])
        error = {"ErrorCode": "Busy", "ErrorMessage": "too fast"}
        return {"Records": [error] * refused + [{}] * (len(Records) - refused)}

    def send_message_batch(self, QueueUrl: str, Entries: Sequence[Any]) -> Any:  # noqa: N803
        refused = self._take([entry["MessageBody"] for entry in Entries])
        return {"Failed": [{"Id": entry["Id"], "Code": "Busy"} for entry in Entries[:refused]]}

    def _take(self, texts: list[str]) -> int:
        self.refusals_left -= 1
        assert -500 < self.refusals_left < 500, "the door is asked for ever"
        refused = int(self.refusals_left >= 0)
        self.taken += texts[refused:]
        return refused


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    seconds: list[float] = []
    monkeypatch.setattr("adapters.platform.aws.time.sleep", seconds.append)
    return seconds


@pytest.mark.parametrize("send", [replay.put_on_stream, replay.queue_webhooks])
def test_what_a_busy_door_refuses_is_sent_again_after_a_pause(
    send: Callable[..., ReplayResult], slept: list[float]
) -> None:
    door = BusyDoor(refusals=3)
    assert send(door, BODIES).counts == {"sent": len(BODIES)}
    assert sorted(door.taken) == sorted(map(json.dumps, BODIES))
    assert len(slept) == 3


@pytest.mark.parametrize("send", [replay.put_on_stream, replay.queue_webhooks])
def test_a_door_that_refuses_all_the_time_ends_the_replay(
    send: Callable[..., ReplayResult], slept: list[float]
) -> None:
    with pytest.raises(RuntimeError, match=r"1 of 5 .* Busy"):
        send(BusyDoor(refusals=499), BODIES)
    assert 5 <= len(slept) <= 30


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
        monkeypatch.setattr(replay, name, lambda stack, **_: None)
    refused_file = tmp_path / "new" / "refused.ndjson"
    monkeypatch.setattr(replay, "REFUSED_FILE", refused_file)
    monkeypatch.setattr(replay, "failures", lambda _: {"EngagementFailures": 3})
    monkeypatch.setattr(replay, "records_of", lambda *_: 0)
    monkeypatch.setattr("local.stack.load", lambda: DEAD)
    assert ended(monkeypatch, "events", "replay", f"tests/data/{file}", "--format", kind) == (
        1,
        f"streakline: 2 refused, with reasons: {refused_file}",
    )
    assert [json.loads(line)["result"] for line in refused_file.read_text().splitlines()] == ["no", "no"]
    for name in ("post_events", "post_webhooks"):
        monkeypatch.setattr(replay, name, lambda *_: ReplayResult())
    assert ended(monkeypatch, "events", "replay", f"tests/data/{file}", "--format", kind)[0] == 0
    assert not refused_file.exists()


def test_a_message_that_comes_into_a_failure_queue_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    depths = iter(
        [
            {"EngagementFailures": 2, "EventsStreamFailures": 0},
            {"EngagementFailures": 2, "EventsStreamFailures": 1},
        ]
    )
    monkeypatch.setattr(replay, "failures", lambda _: next(depths))
    monkeypatch.setattr(replay, "put_on_stream", lambda *_: ReplayResult())
    monkeypatch.setattr(replay, "drain", lambda stack, **_: None)
    monkeypatch.setattr(replay, "REFUSED_FILE", tmp_path / "refused.ndjson")
    monkeypatch.setattr(replay, "records_of", lambda *_: 0)
    monkeypatch.setattr("local.stack.load", lambda: DEAD)
    code, text = ended(monkeypatch, "events", "replay", "tests/data/commits.csv", "--via", "kinesis")
    assert code == 1
    assert "1 in EventsStreamFailures. `streakline queue list` says why" in text
