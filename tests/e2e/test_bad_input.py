"""Bad input: a clear refusal, never a 5xx, nothing stored."""

import gzip
import json
from typing import Any

import pytest
import schemathesis
import urllib3
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.core.result import Ok

from local.api import Api
from local.cloud.tokens import token
from local.stack import Stack
from tests.e2e.conftest import event
from tests.support.effort import effort

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")

POOL = urllib3.PoolManager()


def raw(
    stack: Stack, body: bytes, user: str, path: str = "/v1/events", method: str = "POST"
) -> tuple[int, Any]:
    headers = {"authorization": f"Bearer {token(stack, user)}", "content-type": "application/json"}
    answer = POOL.request(method, stack.api_url + path, body=body, headers=headers, retries=False)
    return answer.status, json.loads(answer.data)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "invalid_json"),
        (b"{", 400, "invalid_json"),
        (b"\xff\xfe\x00", 400, "invalid_json"),
        (gzip.compress(b"{}", mtime=0), 400, "invalid_json"),
        (b"[" * 100_000, 400, "invalid_json"),
        (b"[]", 422, "invalid_field"),
        (b"{}", 422, "invalid_field"),
        (b'{"events": []}', 422, "invalid_field"),
        (b'{"events": [' + b"{}," * 100 + b"{}]}", 422, "invalid_field"),
        (b'{"events": [{}], "more": 1}', 422, "invalid_field"),
        (b'{"events": [{"properties": "' + b"x" * 1_100_000 + b'"}]}', 413, "too_large"),
    ],
)
def test_a_bad_body_is_refused(stack: Stack, user: str, body: bytes, status: int, code: str) -> None:
    got, answer = raw(stack, body, user)
    assert (got, answer["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"idempotency_key": ""}, "idempotency_key"),
        ({"idempotency_key": "é"}, "idempotency_key"),
        ({"idempotency_key": "x" * 129}, "idempotency_key"),
        ({"idempotency_key": None}, "idempotency_key"),
        ({"event_type": "NOPE"}, "event_type"),
        ({"occurred_at": "yesterday"}, "occurred_at"),
        ({"occurred_at": "2026-02-30T00:00:00Z"}, "occurred_at"),
        ({"occurred_at": "2026-02-01T00:00:00"}, "occurred_at"),
        ({"occurred_at": "2026-02-01T24:00:00Z"}, "occurred_at"),
        ({"occurred_at": "0001-01-01T00:00:00+14:00"}, "occurred_at"),
        ({"occurred_at": "9999-12-31T23:59:59-14:00"}, "occurred_at"),
        ({"occurred_at": "2099-01-01T00:00:00Z"}, "occurred_at"),
        ({"occurred_at": "1969-12-31T23:59:59Z"}, "occurred_at"),
        ({"occurred_at": 5}, "occurred_at"),
        ({"timezone": "x" * 257}, "timezone"),
        ({"timezone": 5}, "timezone"),
        ({"source": "\n"}, "source"),
        ({"user_id": "a b"}, "user_id"),
        ({"properties": []}, "properties"),
        ({"properties": {"x": "y" * 70_000}}, "properties"),
        ({"points": 5}, "points"),
    ],
)
def test_a_bad_event_is_rejected_by_field_and_spoils_no_neighbour(
    admin: Api, user: str, change: dict[str, Any], field: str
) -> None:
    good = event(user, "good")
    bad = {**event(user, "bad"), **change}
    status, answer = admin.call("POST", "/v1/events", {"events": [bad, good]})
    assert status == 202
    assert [result["status"] for result in answer["results"]] == ["rejected", "accepted"]
    error = answer["results"][0]["error"]
    assert field in error["field"] or field in error["message"]
    stored = admin.get(f"/v1/users/{user}/events")["events"]
    assert [each["idempotency_key"] for each in stored] == ["good"]


@pytest.mark.parametrize("bad", [b"NaN", b'"\\ud800"', b"1" * 5000, b"[" * 70 + b"]" * 70, b"{}"])
def test_what_is_no_event_is_refused_alone(stack: Stack, user: str, bad: bytes) -> None:
    good = json.dumps(event(user, "good")).encode()
    status, answer = raw(stack, b'{"events": [%s, %s]}' % (bad, good), user)
    assert (status, [each["status"] for each in answer["results"]]) == (202, ["rejected", "accepted"])


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", "+99:00"])
def test_a_zone_that_nobody_knows_refuses_no_event_with_an_offset(admin: Api, user: str, zone: str) -> None:
    sent = {
        **event(user, "a"),
        "occurred_at": f"{event(user, 'a')['occurred_at'][:19]}+02:00",
        "timezone": zone,
    }
    status, answer = admin.call("POST", "/v1/events", {"events": [sent]})
    assert (status, answer["results"][0]["status"]) == (202, "accepted"), answer


@pytest.mark.parametrize("size", [400, 500, 20_000, 65_000])
def test_properties_are_shown_as_they_were_sent(admin: Api, user: str, size: int) -> None:
    sent = {"note": "x" * size, "amount": "10.00"}
    admin.call("POST", "/v1/events", {"events": [event(user, "k", properties=sent)]})
    assert admin.get(f"/v1/users/{user}/events")["events"][0]["properties"] == sent


@pytest.mark.parametrize(
    "path",
    [
        "?as_of=tomorrow", "?as_of=2026-13-01", "/ledger?limit=0", "/ledger?limit=x", "/ledger?cursor=garbage",
        "/ledger?from=x", "/activity?cursor=e30=", "/events?to=2026-99-99", "/streak/explain", "/streak/explain?date=1",
    ],
)  # fmt: skip
def test_bad_parameters_are_400(me: Api, user: str, path: str) -> None:
    status, answer = me.call("GET", f"/v1/users/{user}{path}")
    assert (status, answer["error"]["code"]) == (400, "invalid_parameter")


def test_the_api_keeps_to_its_own_description(stack: Stack, user: str) -> None:
    """Schemathesis makes up requests, valid and not, from the served OpenAPI."""
    document = json.loads(POOL.request("GET", f"{stack.api_url}/v1/openapi.json").data)
    schema = schemathesis.openapi.from_dict(document)
    for operation in schema.get_all_operations():
        assert isinstance(operation, Ok)
        made = operation.ok()
        # Who is erased gets 410 for everything afterwards: that is another user.
        who = f"erased-{user}" if made.method == "delete" else user
        if made.method != "options":  # the emulator answers these itself
            keeps_to_its_description(stack, made, who)


def keeps_to_its_description(stack: Stack, operation: Any, user: str) -> None:
    headers = {"Authorization": f"Bearer {token(stack, user)}"}

    @settings(
        max_examples=effort(1, soak=60), suppress_health_check=list(HealthCheck), phases=[Phase.generate]
    )
    @given(case=operation.as_strategy())
    def fuzz(case: Any) -> None:
        if case.path_parameters and "user_id" in case.path_parameters:
            case.path_parameters["user_id"] = user
        answer = case.call(base_url=stack.api_url, headers=headers, timeout=120)
        assert answer.status_code < 500 or answer.status_code == 503, (case, answer.text)
        assert str(answer.status_code) in case.operation.definition.raw["responses"], (case, answer.text)
        told = answer.json() if answer.status_code >= 400 else {}
        assert answer.status_code < 400 or "code" in told.get("error", {}), (case, answer.text)

    fuzz()
