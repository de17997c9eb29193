"""A deployment in memory, as far as `streakline smoke` looks at one: all that it answers is right."""

import json
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from io import BytesIO
from types import SimpleNamespace
from typing import Any

from ingest.engagement.events_stream import parts_of
from local.cloud.patience import ids_by_user
from local.cloud.streams import kinesis_record
from local.leads.smoke import AMOUNT
from local.smoke.redshift_assumptions import ASSUMPTIONS
from local.stack import Stack
from local.verify import expect
from rules.leads.notice_kinds import lead_holder
from tests.support.parts import modules_of_parts
from tests.support.smoke_faults import Answer

Item = dict[str, Any]
LEAD = "lead-1"
MODULES = list(modules_of_parts("smoke_world"))
OUTPUTS = {
    "EventsStreamName": "events",
    "LakeBucketName": "lake",
    "NightlyArn": "arn:nightly",
    **{f"{name}FunctionName": name for name in ("Leads", "Warehouse")},
}
TABLES = (
    *("Limits", "BPEvents", "IdempotencyKeys", "RewardsLedger", "DailyActivity", "UserStreaks"),
    *("Event", "Memory", "Feature", "Notifications"),
    *(table for module in MODULES for table in module.TABLES),
)


class FakeStack(Stack):
    """A stack whose clients are those of a world."""

    clients: dict[str, Any]

    def client(self, service: str, attempts: int = 4) -> Any:
        return self.clients.get(service)


def pages(key: str, listed: Callable[..., list[Any]]) -> Callable[[str], Any]:
    """What get_paginator returns: one page."""
    return lambda _: SimpleNamespace(paginate=lambda **asked: [{key: listed(**asked)}])


class World:
    """Its API, its tables and its other services. deployed: outputs."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, Any]] = defaultdict(dict)
        self.spent: dict[str, dict[str, int]] = defaultdict(dict)
        self.hooks: list[Any] = []
        self.items: dict[str, list[Item]] = {name: [] for name in TABLES}
        self.parts = [module.SmokePartWorld(self) for module in MODULES]
        self.objects: dict[str, bytes] = {}
        self.rows, self.execution, self.error = 1, "SUCCEEDED", None
        self.assumptions: dict[str, list[dict[str, Any]]] = {
            each.sql: [{"v": each.answer}] for each in ASSUMPTIONS
        }
        self.alarms = {"ApiServerErrors": "OK"}
        self.functions: dict[str, Any] = {"Leads": {"left": 0}}
        self.stack = FakeStack(
            "http://api", "http://emulator", "r", dict(OUTPUTS), {t: t for t in TABLES}, ""
        )
        object.__setattr__(self.stack, "clients", self._clients())

    # The API

    def call(self, method: str, path: str, body: Any = None) -> Answer:
        path, _, query = path.partition("?")
        for pattern, answer in self._routes():
            if found := re.fullmatch(pattern, f"{method} {path}"):
                return answer(body, query, *found.groups())
        raise AssertionError(f"nobody answers {method} {path}")

    def _routes(self) -> list[tuple[str, Callable[..., Answer]]]:
        return [
            (r"GET /v1/health", lambda *_: (200, {"status": "ok"})),
            (r"POST /v1/events", lambda body, _: (202, {"results": [self._take(e) for e in body["events"]]})),
            (r"GET /v1/users/([^/]+)", lambda _, query, user: (200, self._profile(user, query[-10:]))),
            (r"GET /v1/users/([^/]+)/events", lambda _, __, user: (200, {"events": self._listed(user)})),
            (r"GET /v1/users/([^/]+)/ledger", lambda _, __, user: (200, {"entries": self._ledger(user)})),
            (r"POST /v1/users/([^/]+)/redemptions", self._redeem),
            (r"POST /v1/leads/events", self._hook),
            (r"GET /v1/leads", lambda *_: (200, {"lead_id": LEAD}) if self.hooks else (404, {})),
            (r"GET /v1/leads/([^/]+)/events", lambda *_: (200, {"events": [1]})),
            (r"GET /v1/leads/([^/]+)/features", lambda *_: (200, {"features": self._features()})),
            *(route for part in self.parts for route in part.routes()),
        ]

    def _take(self, body: Any) -> dict[str, Any]:
        user, key = body["user_id"], body["idempotency_key"]
        (event_id,) = ids_by_user([body])[user]
        held = self.events[user].setdefault(key, body)
        told = {"idempotency_key": key, "event_id": event_id}
        if held is not body:
            return told | {"status": "duplicate" if held == body else "conflict"}
        self.items["BPEvents"].append({"user_id": {"S": user}, "event_id": {"S": event_id}})
        self.items["UserStreaks"] = [{"user_id": {"S": each}} for each in self.events]
        self.notify(user)
        if not key.startswith("day-0"):
            return told | {"status": "accepted"}
        came = datetime.now(UTC).date()
        place = f"raw/events/arrived={came}/dt={body['occurred_at'][:10]}/hour=12/1"
        self.objects[place] = json.dumps({"user_id": user}).encode()
        return told | {"status": "accepted"}

    def _profile(self, user: str, as_of: str) -> dict[str, Any]:
        events = list(self.events[user].values())
        if not events:
            return {"balance": 0, "active_days": 0}
        found = asdict(expect(events, date.fromisoformat(as_of))[user])
        return found | {"balance": found["total_bestie_points"] - sum(self.spent[user].values())}

    def _listed(self, user: str) -> list[Any]:
        ids = sorted(ids_by_user(self.events[user].values()).get(user, ()))
        return [{"event_id": each, "points_awarded": 10} for each in ids]

    def _ledger(self, user: str) -> list[Any]:
        spent = self.spent[user].values()
        return [{"points": 10} for _ in self.events[user]] + [{"points": -each} for each in spent]

    def _redeem(self, body: Any, _: str, user: str) -> Answer:
        duplicate = {"duplicate": True} if body["reward_id"] in self.spent[user] else {}
        if body["points"] > 1000:
            return 409, {"error": {"code": "insufficient_balance"}}
        self.spent[user][body["reward_id"]] = body["points"]
        balance = sum(each["points"] for each in self._ledger(user))
        return 201, {"entry_id": "e1", "balance": balance} | duplicate

    def _hook(self, body: Any, _: str) -> Answer:
        claim = f"{body['organization_id']}/ecommerce#order:1"
        self.hooks.append(body)
        if len(self.hooks) == 1:
            target = {"target": {"S": f"{LEAD}#when"}, "idempotency_key": {"S": "lead-event"}}
            self.items["IdempotencyKeys"].append({"user_id": {"S": claim}, **target})
            self.items["Feature"].append({"lead_organization_id": {"S": LEAD}})
            self.notify(lead_holder(LEAD))
        return 202, {"accepted": 1}

    def notify(self, holder: str) -> None:
        self.items["Notifications"] = [
            {"holder": {"S": holder}, "place": {"S": "state"}},
            *self.items["Notifications"],
        ]

    def _features(self) -> dict[str, Any]:
        return {"monetary_total": float(AMOUNT), "frequency_purchases_30d": 1, "has_purchased": True}

    # The other services

    def _clients(self) -> dict[str, Any]:
        alarm = {"ResourceType": "AWS::CloudWatch::Alarm", "PhysicalResourceId": "ApiServerErrors"}
        nested = {"ResourceType": "AWS::CloudFormation::Stack", "PhysicalResourceId": "nested"}
        resources = {"nested": [alarm]}

        def listed(StackName: str) -> list[Any]:  # noqa: N803
            return resources.get(StackName, [nested])

        return {
            "dynamodb": Tables(self),
            "kinesis": SimpleNamespace(put_records=self.put_records),
            "s3": SimpleNamespace(
                get_paginator=pages("Contents", self._objects),
                get_object=lambda Bucket, Key: {"Body": BytesIO(self.objects[Key])},  # noqa: N803
                delete_object=lambda Bucket, Key: self.objects.pop(Key, None),  # noqa: N803
            ),
            "stepfunctions": SimpleNamespace(
                start_execution=self._start,
                describe_execution=lambda **_: {"status": self.execution},
                get_paginator=pages("events", lambda **_: []),
            ),
            "lambda": SimpleNamespace(
                get_function_configuration=lambda **_: {"Environment": {"Variables": {"WAREHOUSE_URL": "w"}}},
                invoke=lambda FunctionName, **_: self._invoke(FunctionName),  # noqa: N803
            ),
            "cloudformation": SimpleNamespace(get_paginator=pages("StackResourceSummaries", listed)),
            "cloudwatch": SimpleNamespace(
                describe_alarms=lambda AlarmNames, **_: {  # noqa: N803
                    "MetricAlarms": [{"AlarmName": n, "StateValue": self.alarms[n]} for n in AlarmNames]
                }
            ),
        }

    def put_records(self, StreamName: str, Records: list[Any]) -> Any:  # noqa: N803
        for each in Records:
            for part in parts_of(kinesis_record({**each, "SequenceNumber": "1"}, "arn:aws:kinesis:r:1:s")):
                self._take(part.body)
        return {"FailedRecordCount": 0, "Records": []}

    def _objects(self, Bucket: str, Prefix: str) -> list[Any]:  # noqa: N803
        now = datetime.now(UTC) + timedelta(seconds=1)
        return [
            {"Key": key, "Size": 1, "ETag": '"e"', "LastModified": now}
            for key in self.objects
            if key.startswith(Prefix)
        ]

    def _start(self, name: str, **_: Any) -> Any:
        told = {"error": self.error, "counts": {"users": 1, "different": 0}}
        self.objects[f"reports/{name}.json"] = json.dumps(told).encode()
        return {"executionArn": f"arn:nightly:{name}"}

    def _invoke(self, function: str) -> Any:
        text = json.dumps(self.functions[function]).encode()
        return {"Payload": SimpleNamespace(read=lambda: text)}


class Tables:
    """DynamoDB as the clean-up asks it, over a world's items."""

    def __init__(self, world: World) -> None:
        self.items = world.items

    def query(self, TableName: str, ExpressionAttributeValues: Item, **_: Any) -> Any:  # noqa: N803
        (wanted,) = ExpressionAttributeValues.values()
        return {"Items": [each for each in self.items[TableName] if next(iter(each.values())) == wanted]}

    def get_item(self, TableName: str, Key: Item, **_: Any) -> Any:  # noqa: N803
        found = [each for each in self.items[TableName] if Key.items() <= each.items()]
        return {"Item": found[0]} if found else {}

    def delete_item(self, TableName: str, Key: Item) -> None:  # noqa: N803
        self.items[TableName] = [each for each in self.items[TableName] if not Key.items() <= each.items()]
