"""The client for servers: batches, retries, what is refused, and profiles of many users."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

import pytest
from streakline_client import Refused, Reply, Request, Sent, ServerEvent, StreaklineServer, Unreachable

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
Result = dict[str, Any]


class Service:
    """A service that stores events, but for those whose type says otherwise."""

    def __init__(self) -> None:
        self.batches, self.prefers, self.paths = list[list[Any]](), list[str | None](), list[str]()
        self.stored = dict[tuple[str, str], Any]()
        self.busy = 0  # answers of 503 to come
        self.unavailable = dict[str, int]()  # by key: how often it cannot be stored yet

    def __call__(self, request: Request) -> Reply:
        self.paths.append(request.path)
        if self.busy:
            self.busy -= 1
            return self.refusal(503, "unavailable")
        if request.method == "GET":
            given = unquote(request.path.partition("ids=")[2]).split(",")
            users = [{"user_id": unquote(each)} for each in given if each != "nobody"]
            return Reply(200, json.dumps({"users": users, "missing": []}).encode())
        events = json.loads(request.body or b"")["events"]
        if any(event["event_type"] == "BAD_BATCH" for event in events):
            return self.refusal(
                422, "invalid_field", [{"field": "events[0].properties", "reason": "is no object"}]
            )
        self.batches.append(events)
        self.prefers.append(request.headers.get("Prefer"))
        results = [self.result(event) for event in events]
        if (
            all(result["status"] == "rejected" for result in results)
            and events[0]["event_type"] == "FORBIDDEN"
        ):
            return self.refusal(403, "forbidden", results)
        if request.headers.get("Prefer"):
            return Reply(200, json.dumps({"results": results, "profile": {"current_streak": 1}}).encode())
        return Reply(202, json.dumps({"results": results}).encode())

    def result(self, event: Any) -> Result:
        key = event["user_id"], event["idempotency_key"]
        refusal = {"UNKNOWN": "unknown_type", "FORBIDDEN": "forbidden"}.get(event["event_type"])
        if self.unavailable.get(event["idempotency_key"], 0) > 0:
            self.unavailable[event["idempotency_key"]] -= 1
            refusal = "unavailable"
        if refusal:
            return {"status": "rejected", "error": {"code": refusal, "field": "event_type", "message": "no"}}
        status = "accepted" if key not in self.stored else "duplicate"
        if self.stored.setdefault(key, event) != event:
            return {
                "status": "conflict",
                "error": {"code": "conflict", "field": "idempotency_key", "message": "no"},
            }
        return {"status": status, "event_id": "-".join(key)}

    def refusal(self, status: int, code: str, details: Any = None) -> Reply:
        return Reply(
            status, json.dumps({"error": {"code": code, "message": "no", "details": details}}).encode()
        )


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def server(service: Service) -> StreaklineServer:
    return StreaklineServer("https://x.test", "t", transport=service, sleep=lambda _: None)


def event(number: int, event_type: str = "ORDER", **more: Any) -> ServerEvent:
    return ServerEvent(
        user=f"u{number % 7}", event_type=event_type, key=f"order:{number}", occurred_at=AT, **more
    )


def test_an_event_is_sent_as_it_is_said(service: Service, server: StreaklineServer) -> None:
    more: dict[str, Any] = {"timezone": "Europe/Berlin", "properties": {"euros": 12}}
    sent = server.send("ada", "ORDER", key="order:1", occurred_at=AT + timedelta(seconds=1), **more)
    assert (sent.status, sent.is_stored, sent.event_id, sent.applied) == (
        "accepted",
        True,
        "ada-order:1",
        None,
    )
    wanted = {"idempotency_key": "order:1", "event_type": "ORDER", "occurred_at": "2026-03-01T12:00:01+00:00"}
    assert service.batches == [[{**wanted, "user_id": "ada", **more}]]
    assert (
        server.send("ada", "ORDER", key="order:1", occurred_at="2026-03-01T12:00:01+00:00", **more).status
        == "duplicate"
    )


def test_who_waits_learns_what_it_did(service: Service, server: StreaklineServer) -> None:
    sent = server.send("ada", "ORDER", key="1", wait=60)
    assert sent.applied is not None
    assert sent.applied["profile"]["current_streak"] == 1
    server.send("ada", "ORDER", key="2", wait=0.5)
    assert service.prefers == ["wait=5", "wait=1"]


@pytest.mark.parametrize(
    ("event_type", "key", "status", "code"),
    [
        ("UNKNOWN", "2", 422, "unknown_type"),
        ("FORBIDDEN", "2", 403, "forbidden"),
        ("OTHER", "1", 409, "conflict"),
    ],
)
def test_a_refusal_is_raised(
    server: StreaklineServer, event_type: str, key: str, status: int, code: str
) -> None:
    server.send("ada", "ORDER", key="1", occurred_at=AT)
    with pytest.raises(Refused) as told:
        server.send("ada", event_type, key=key, occurred_at=AT)
    assert told.value.code == code
    assert told.value.status in (status, 422)


def test_many_go_in_batches_and_one_bad_one_stops_no_other(
    service: Service, server: StreaklineServer
) -> None:
    types = {7: "UNKNOWN", 203: "BAD_BATCH"}
    sent = list(server.send_all(event(number, types.get(number, "ORDER")) for number in range(250)))
    assert [each.event.key for each in sent] == [f"order:{number}" for number in range(250)]
    assert {number: each.code for number, each in enumerate(sent) if not each.is_stored} == {
        7: "unknown_type",
        203: "invalid_field",
    }
    assert sent[203].field == "events[0].properties"
    assert len(service.stored) == 248
    assert max(map(len, service.batches)) == 100


def test_large_events_go_in_smaller_batches(service: Service, server: StreaklineServer) -> None:
    sent = list(server.send_all(event(number, properties={"text": "x" * 60_000}) for number in range(40)))
    assert all(each.is_stored for each in sent)
    assert max(len(json.dumps(batch)) for batch in service.batches) <= 500_000


def test_what_cannot_be_stored_yet_is_sent_again(service: Service, server: StreaklineServer) -> None:
    service.busy, service.unavailable = 3, {"order:1": 2, "order:2": 99}
    sent = {each.event.key: each for each in server.send_all(event(number) for number in range(4))}
    assert [each.status for each in sent.values()] == ["accepted", "accepted", "unavailable", "accepted"]
    assert service.batches[1] != service.batches[0], "what is stored is not sent again"
    with pytest.raises(Refused, match="503 unavailable"):
        server.send("u2", "ORDER", key="order:2", occurred_at=AT)


def test_nobody_there_is_told(server: StreaklineServer) -> None:
    def gone(_: Request) -> Reply:
        raise Unreachable("gone")

    lonely = StreaklineServer("https://x.test", "t", transport=gone, sleep=lambda _: None)
    with pytest.raises(Unreachable):
        list(lonely.send_all([event(1)]))


def test_profiles_of_many_users(service: Service, server: StreaklineServer) -> None:
    users = [*(f"u{number}" for number in range(150)), "a,b", "x/y+z=", "nobody", "u1"]
    found = server.profiles(users)
    assert list(found) == [each for each in dict.fromkeys(users) if each != "nobody"]
    assert len(service.paths) == 2


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: StreaklineServer("https://x.test", ""), "token must be"),
        (
            lambda: (
                event(1)
                .__class__(user="u", event_type="A", key="1", occurred_at=AT.replace(tzinfo=None))
                .body()
            ),
            "must have a zone",
        ),
    ],
)
def test_what_cannot_work_is_refused_at_once(wrong: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        wrong()


def test_the_kinds_of_sent_are_said(server: StreaklineServer) -> None:
    assert isinstance(server.send("ada", "ORDER", key="9"), Sent)
