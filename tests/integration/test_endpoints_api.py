"""Endpoints of outgoing webhooks, through the real handlers: registered, tested, rotated, ended, and replayed."""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from standardwebhooks import Webhook, WebhookVerificationError

import ingest.endpoints_api as door
import processors.outgoing.delivery as delivering
import processors.outgoing.notifications as telling
from adapters.outgoing.lane_store import LaneStore
from adapters.outgoing.outbox_store import LANE_SHARDS, OutboxStore
from adapters.platform.aws import client
from adapters.platform.fence import RegionFenced
from tests.support.dying import FAILURES, Dying, Killed
from tests.support.engine import Engine, lean_client
from tests.support.hook_receiver import Receiver, receiver
from tests.support.message_schema import problems
from tests.support.site import ADMIN

CONTEXT = SimpleNamespace(
    function_name="f",
    memory_limit_in_mb=128,
    invoked_function_arn="arn",
    aws_request_id="1",
    get_remaining_time_in_millis=lambda: 120_000,
)
MODULES = (door, delivering, telling)


class Bus:
    """EventBridge that refuses when a test wants it to. Another test has the emulator's."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.fail = False

    def put_events(self, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803 (botocore's name)
        if self.fail:
            return {"FailedEntryCount": 1, "Entries": [{"ErrorCode": "ThrottlingException"}]}
        self.entries += Entries
        return {"FailedEntryCount": 0, "Entries": [{}]}


class Desk:
    """An admin, and the functions behind the door. Lambda invokes the function that delivers at once."""

    def __init__(self, engine: Engine) -> None:
        self.dynamodb, self.bus = lean_client(engine, "dynamodb"), Bus()
        self.services: dict[str, Any] = {
            "dynamodb": self.dynamodb,
            "secretsmanager": lean_client(engine, "secretsmanager"),
            "sqs": lean_client(engine, "sqs"),
            "events": self.bus,
            "lambda": self,
        }

    def invoke(self, FunctionName: str, InvocationType: str, Payload: str) -> None:  # noqa: N803 (botocore's names)
        assert (FunctionName, InvocationType) == ("deliver", "Event")
        self.deliver(json.loads(Payload))

    def deliver(self, event: Any) -> Any:
        return delivering.handler(event, CONTEXT)

    def call(self, method: str, path: str, body: Any = None, *groups: str) -> tuple[int, Any]:
        event = {
            "version": "2.0",
            "routeKey": f"{method} {path}",
            "rawPath": f"/v1/webhook-endpoints{path}",
            "requestContext": {
                "http": {"method": method, "path": path},
                "stage": "$default",
                "authorizer": {"jwt": {"claims": {"sub": "desk", "cognito:groups": list(groups)}}},
            },
            "body": None if body is None else json.dumps(body),
            "isBase64Encoded": False,
        }
        answer = door.handler(event, CONTEXT)
        return answer["statusCode"], json.loads(answer["body"])

    def admin(self, method: str, path: str = "", body: Any = None) -> tuple[int, Any]:
        return self.call(method, path, body, ADMIN)

    def register(self, there: Receiver, **more: Any) -> Any:
        body = {"organization_id": "acme", "url": f"http://127.0.0.1:{there.port}/hook", **more}
        status, told = self.admin("POST", "", body)
        assert status == 201, told
        return told


@pytest.fixture
def desk(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    for name, value in engine.environment().items():
        monkeypatch.setenv(name, value)
    client.cache_clear()
    made = Desk(engine)
    for module in MODULES:
        monkeypatch.setattr(module._parts, "client", made.services.__getitem__)
        module._parts.cache_clear()
    for table, keys in (
        ("WebhookEndpoints", ("registry", "endpoint_id")),
        ("Notifications", ("holder", "place")),
    ):
        for each in made.dynamodb.scan(TableName=table)["Items"]:
            made.dynamodb.delete_item(TableName=table, Key={name: each[name] for name in keys})
    yield made
    for module in MODULES:
        module._parts.cache_clear()


@pytest.fixture
def there() -> Iterator[Receiver]:
    with receiver() as told:
        yield told


def secret_is_in(told: Any) -> bool:
    return "whsec_" in json.dumps(told)


def forget_secrets() -> None:
    """As in another process, or a minute later."""
    delivering._parts.cache_clear()


def test_a_test_message_is_verified_by_the_standard_s_own_library(desk: Desk, there: Receiver) -> None:
    made = desk.register(there)
    status, tested = desk.admin("POST", f"/{made['endpoint_id']}/test", {})
    assert status == 202
    ((headers, body),) = there.received
    content = Webhook(made["secret"]).verify(body, headers)
    assert (content["type"], headers["webhook-id"]) == ("endpoint.test", tested["message_id"])
    assert content["data"]["endpoint_id"] == made["endpoint_id"]


def test_while_a_secret_is_rotated_both_sign_and_it_is_shown_once(desk: Desk, there: Receiver) -> None:
    made = desk.register(there)
    one = f"/{made['endpoint_id']}"
    _, rotated = desk.admin("POST", f"{one}/secret", {})
    forget_secrets()
    desk.admin("POST", f"{one}/test", {})
    headers, body = there.received[-1]
    for secret in (made["secret"], rotated["secret"]):
        Webhook(secret).verify(body, headers)
    _, at_once = desk.admin("POST", f"{one}/secret", {"overlap_hours": 0})
    forget_secrets()
    desk.admin("POST", f"{one}/test", {})
    headers, body = there.received[-1]
    Webhook(at_once["secret"]).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(rotated["secret"]).verify(body, headers)
    assert not secret_is_in(desk.admin("GET"))
    assert not secret_is_in(desk.dynamodb.scan(TableName="WebhookEndpoints"))


def test_endpoints_are_listed_and_ended(desk: Desk, there: Receiver) -> None:
    made = desk.register(
        there, types=["streak.lost"], filters={"streak.lost": {"lost_streak": [{"at_least": 7}]}}
    )
    _, told = desk.admin("GET")
    assert told["endpoints"] == [{name: value for name, value in made.items() if name != "secret"}]
    assert desk.admin("DELETE", f"/{made['endpoint_id']}") == (200, {})
    assert desk.admin("GET") == (200, {"endpoints": []})
    for method, path, body in (
        ("DELETE", "", None),
        ("POST", "/secret", {}),
        ("POST", "/test", {}),
        ("POST", "/enable", {}),
    ):
        status, told = desk.admin(method, f"/{made['endpoint_id']}{path}", body)
        assert (status, told["error"]["code"]) == (404, "not_found")


class Refusing:
    """A client that refuses some operations each time."""

    def __init__(self, real: Any, error: Exception, *operations: str) -> None:
        self._real, self._error, self._operations = real, error, operations

    def __getattr__(self, name: str) -> Any:
        return self._refuse if name in self._operations else getattr(self._real, name)

    def _refuse(self, **_: Any) -> None:
        raise self._error


def test_a_region_that_may_not_write_changes_no_endpoint_and_no_secret(desk: Desk, there: Receiver) -> None:
    made = desk.register(there)
    real, fenced = desk.services["dynamodb"], RegionFenced(region="us-west-2", why="us-east-1 writes")
    desk.services["dynamodb"] = Refusing(real, fenced, "put_item", "update_item", "delete_item")
    door._parts.cache_clear()
    names = door._parts().secrets.names()
    body = {name: made[name] for name in ("organization_id", "url")}
    for method, path, asked in (
        ("POST", "", body),
        ("POST", f"/{made['endpoint_id']}/secret", {}),
        ("DELETE", f"/{made['endpoint_id']}", None),
    ):
        assert desk.admin(method, path, asked)[0] == 503
    assert door._parts().secrets.names() == names
    desk.services["dynamodb"] = real
    desk.admin("POST", f"/{made['endpoint_id']}/test", {})
    ((headers, sent),) = there.received
    Webhook(made["secret"]).verify(sent, headers)
    assert " " not in headers["webhook-signature"], "one secret signs"


@pytest.mark.parametrize("how", FAILURES)
@pytest.mark.parametrize(("service", "calls"), [("dynamodb", 3), ("secretsmanager", 1)])
def test_a_registration_that_died_anywhere_leaves_no_secret_of_nobody(
    desk: Desk, there: Receiver, service: str, calls: int, how: str
) -> None:
    real, names = desk.services[service], door._parts().secrets.names()
    for dies_at in range(1, calls + 1):
        desk.services[service] = Dying(real, dies_at, how)
        door._parts.cache_clear()
        body = {"organization_id": "acme", "url": f"http://127.0.0.1:{there.port}/hook"}
        with suppress(Killed):
            assert desk.admin("POST", "", body)[0] >= 500
        desk.services[service] = real
        door._parts.cache_clear()
        for each in desk.admin("GET")[1]["endpoints"]:
            status, _ = desk.admin("POST", f"/{each['endpoint_id']}/enable", {})
            assert status == (409 if each["disabled"] else 200)
            assert desk.admin("DELETE", f"/{each['endpoint_id']}") == (200, {})
        assert door._parts().secrets.names() == names


@pytest.mark.parametrize(
    ("service", "operation"), [("secretsmanager", "delete_secret"), ("dynamodb", "delete_item")]
)
def test_an_endpoint_whose_end_failed_halfway_gets_nothing_more_and_cannot_be_enabled(
    desk: Desk, there: Receiver, service: str, operation: str
) -> None:
    made = desk.register(there)
    error: Any = {"Error": {"Code": "InternalServiceError", "Message": "try again"}}
    desk.services[service] = Refusing(desk.services[service], ClientError(error, operation), operation)
    door._parts.cache_clear()
    assert desk.admin("DELETE", f"/{made['endpoint_id']}")[0] >= 500
    status, told = desk.admin("POST", f"/{made['endpoint_id']}/enable", {})
    assert (status, told["error"]["code"]) == (409, "endpoint_ended")
    desk.admin("POST", f"/{made['endpoint_id']}/test", {})
    assert there.received == []
    assert [each["disabled"] for each in desk.admin("GET")[1]["endpoints"]] == ["ended"]


@pytest.mark.parametrize("how", FAILURES)
@pytest.mark.parametrize(("service", "calls"), [("dynamodb", 3), ("secretsmanager", 2)])
def test_an_end_that_died_anywhere_and_comes_again_leaves_no_secret(
    desk: Desk, there: Receiver, service: str, calls: int, how: str
) -> None:
    real = desk.services[service]
    for dies_at in range(1, calls + 1):
        made = desk.register(there)
        desk.services[service] = Dying(real, dies_at, how)
        door._parts.cache_clear()
        with suppress(Killed):
            assert desk.admin("DELETE", f"/{made['endpoint_id']}")[0] >= 500
        desk.services[service] = real
        door._parts.cache_clear()
        assert desk.admin("DELETE", f"/{made['endpoint_id']}")[0] in (200, 404)
        assert desk.admin("GET") == (200, {"endpoints": []})
        assert made["endpoint_id"] not in str(door._parts().secrets.names())


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"url": "https://hooks.example.com/"}, "organization_id"),
        ({"organization_id": "acme"}, "url"),
        ({"organization_id": "a b", "url": "https://hooks.example.com/"}, "organization_id"),
        ({"organization_id": "acme", "url": "ftp://hooks.example.com/"}, "url"),
        ({"organization_id": "acme", "url": "https://user:pw@hooks.example.com/"}, "url"),
        ({"organization_id": "acme", "url": "https://2130706433/"}, "url"),
        (
            {"organization_id": "acme", "url": "https://hooks.example.com/", "types": ["streak.won"]},
            "types.0",
        ),
        (
            {"organization_id": "acme", "url": "https://hooks.example.com/", "filters": {"streak.won": {}}},
            "filters",
        ),
        ({"organization_id": "acme", "url": "https://hooks.example.com/", "secret": "whsec_mine"}, "body"),
    ],
)
def test_what_is_wrong_is_named(desk: Desk, body: Any, field: str) -> None:
    status, told = desk.admin("POST", "", body)
    assert (status, told["error"]["code"]) == (422, "invalid_field")
    assert told["error"]["details"][0]["field"] == field


@pytest.mark.parametrize(
    "url",
    ["https://127.0.0.1/", "https://169.254.169.254/latest/", "https://[::1]/", "http://x.example.com/"],
)
def test_on_aws_no_private_address_is_taken(desk: Desk, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("PRIVATE_ENDPOINTS", "false")
    status, told = desk.admin("POST", "", {"organization_id": "acme", "url": url})
    assert (status, told["error"]["details"][0]["field"]) == (422, "url")


def test_only_admins_and_only_where_it_is_on_and_no_more_than_twenty(
    desk: Desk, there: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for method, path in (
        ("GET", ""),
        ("POST", ""),
        ("DELETE", "/e"),
        ("POST", "/e/secret"),
        ("POST", "/e/test"),
        ("POST", "/e/enable"),
    ):
        assert desk.call(method, path, {}, "streakline/producers")[0] == 403
    monkeypatch.setattr("ingest.endpoints_api.ENDPOINTS_MAX", 1)
    desk.register(there)
    body = {"organization_id": "acme", "url": "https://hooks.example.com/"}
    assert desk.admin("POST", "", body)[1]["error"]["code"] == "endpoints_max"
    monkeypatch.setenv("OUTGOING_WEBHOOKS", "false")
    door._parts.cache_clear()
    assert desk.admin("POST", "", body)[1]["error"]["code"] == "outgoing_off"


def record(version: int, points: int, user: str = "ann") -> dict[str, Any]:
    image = {
        "user_id": {"S": user},
        "version": {"N": str(version)},
        "total_bestie_points": {"N": str(points)},
        "balance": {"N": str(points)},
        "timezone": {"S": "UTC"},
        "streak_updated_at": {"S": f"2026-03-10T05:16:23.00000{version}Z"},
        "ledger_head": {"S": f"2026-03-10T05:16:23.00000{version}Z"},
        "ledger_seq": {"N": str(version)},
    }
    return {"eventName": "MODIFY", "dynamodb": {"NewImage": image, "SequenceNumber": str(version)}}


def redemption(user: str = "ann") -> dict[str, Any]:
    image = {
        "holder": {"S": user},
        "place": {"S": "2026-03-10T05:16:24.000001Z"},
        "reward_id": {"S": "mug"},
        "brand": {"S": "acme"},
        "price_points": {"N": "5"},
        "rules_version": {"N": "1"},
        "fulfilment": {"S": "requested"},
    }
    return {"eventName": "INSERT", "dynamodb": {"NewImage": image, "SequenceNumber": "9"}}


def test_a_reward_of_a_user_whose_profile_was_never_sent_shows_the_profile_as_it_is(
    desk: Desk, there: Receiver
) -> None:
    made = desk.register(there)
    user = "redeemer"
    assert telling.handler({"Records": [redemption(user)]}, CONTEXT) == {"batchItemFailures": []}
    assert there.received == [], "nobody is notified of a user who is not there"
    desk.dynamodb.put_item(TableName="UserStreaks", Item=record(2, 9, user)["dynamodb"]["NewImage"])
    assert telling.handler({"Records": [redemption(user)]}, CONTEXT) == {"batchItemFailures": []}
    ((headers, body),) = there.received
    told = Webhook(made["secret"]).verify(body, headers)
    assert problems(body) == []
    assert (told["type"], told["data"]["profile"]["balance"]) == ("reward.redeemed", 9)


def test_changes_and_redeemed_rewards_go_through_the_real_handlers_to_the_endpoint(
    desk: Desk, there: Receiver
) -> None:
    made = desk.register(there)
    told = telling.handler({"Records": [record(1, 5), record(2, 9), redemption(), redemption()]}, CONTEXT)
    assert told == {"batchItemFailures": []}
    content = [Webhook(made["secret"]).verify(body, headers) for headers, body in there.received]
    assert [each["type"] for each in content] == ["points.changed", "points.changed", "reward.redeemed"]
    assert [each["data"]["number"] for each in content] == [1, 2, 3]
    assert (content[1]["data"]["change"], content[2]["data"]["reward_id"]) == (4, "mug")


def test_what_is_no_profile_is_kept_with_its_reason(desk: Desk, there: Receiver, engine: Engine) -> None:
    desk.register(there)
    broken = record(1, 5)
    del broken["dynamodb"]["NewImage"]["balance"]
    told = telling.handler({"Records": [broken], "streakline_redrive": True}, CONTEXT)
    assert told["batchItemFailures"][0]["reason"].startswith("KeyError")


def test_a_person_who_cannot_be_told_of_keeps_nobody_else_waiting(
    desk: Desk, there: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = desk.register(there)
    put = OutboxStore.put

    def broken(store: OutboxStore, holder: str, *rest: Any) -> None:
        if holder == "ann":
            raise RuntimeError("it is broken")
        put(store, holder, *rest)

    monkeypatch.setattr(OutboxStore, "put", broken)
    records = [record(1, 5), record(1, 7, user="bob")]
    told = telling.handler({"Records": records, "streakline_redrive": True}, CONTEXT)
    assert [each["reason"] for each in told["batchItemFailures"]] == ["RuntimeError: it is broken"]
    content = [Webhook(made["secret"]).verify(body, headers) for headers, body in there.received]
    assert [each["data"]["user_id"] for each in content] == ["bob"]


def test_what_arrived_is_sent_again_on_demand_with_the_same_ids(desk: Desk, there: Receiver) -> None:
    made = desk.register(there)
    telling.handler({"Records": [record(1, 5), record(2, 9)]}, CONTEXT)
    first = [headers["webhook-id"] for headers, _ in there.received]
    asked: dict[str, Any] = {"endpoint_id": made["endpoint_id"], "user_id": "ann"}

    def replay(**more: Any) -> Any:
        there.received.clear()
        return desk.deliver(
            {
                "Records": [{"messageId": "m", "body": json.dumps({**asked, **more})}],
                "streakline_redrive": True,
            }
        )

    assert replay() == {"batchItemFailures": []}
    assert [headers["webhook-id"] for headers, _ in there.received] == first
    assert replay(number=2) == {"batchItemFailures": []}
    assert [headers["webhook-id"] for headers, _ in there.received] == first[1:]
    for more in (
        {"number": 3},
        {"since": "2027"},
        {"endpoint_id": "nobody"},
        {"user_id": "bob"},
        {"number": "x"},
    ):
        (failed,) = replay(**more)["batchItemFailures"]
        assert failed["reason"]
        assert there.received == []


def test_the_same_events_are_put_on_a_bus(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENT_BUS_NAME", "apps")
    desk.bus.fail = True
    telling.handler({"Records": [record(1, 5)]}, CONTEXT)
    assert desk.bus.entries == []
    desk.bus.fail = False
    lanes = LaneStore(desk.dynamodb, "Notifications")
    lane = lanes.get("ann", "event-bus")
    assert lane is not None and lane.failures == 1
    lanes.wait(lane, datetime(2026, 1, 1, tzinfo=UTC))  # its pause is over
    for share in range(LANE_SHARDS):
        desk.deliver({"endpoint_id": "event-bus", "share": share})
    (entry,) = desk.bus.entries
    assert (entry["DetailType"], entry["EventBusName"], entry["Source"]) == (
        "points.changed",
        "apps",
        "streakline",
    )
    detail = json.loads(entry["Detail"])
    assert (detail["user_id"], detail["change"], detail["profile"]["balance"]) == ("ann", 5, 5)
    assert detail["id"].startswith("msg_")


def test_a_rule_of_an_event_bus_routes_them_by_type(
    desk: Desk, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bus is the emulator's EventBridge: a rule for one type leads to a queue."""
    bus, sqs = engine.client("events"), engine.client("sqs")
    name = f"apps-{time.time_ns()}"
    bus.create_event_bus(Name=name)
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    pattern = {"source": ["streakline"], "detail-type": ["points.changed"], "detail": {"user_id": ["ann"]}}
    bus.put_rule(Name=name, EventBusName=name, EventPattern=json.dumps(pattern))
    bus.put_targets(Rule=name, EventBusName=name, Targets=[{"Id": "queue", "Arn": arn}])
    desk.services["events"] = bus
    monkeypatch.setenv("EVENT_BUS_NAME", name)
    telling.handler({"Records": [record(1, 5), record(1, 7, user="bob")]}, CONTEXT)
    (message,) = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=5)["Messages"]
    told = json.loads(message["Body"])
    assert (told["detail-type"], told["source"]) == ("points.changed", "streakline")
    detail = told["detail"]
    assert (detail["user_id"], detail["change"], detail["profile"]["balance"]) == ("ann", 5, 5)
    assert detail["id"].startswith("msg_")
