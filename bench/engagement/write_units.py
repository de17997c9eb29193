"""Write request units an event, from ingest to the last effect, compared with the naive design.

The emulator counts them. Users have open accounts; each batch is their first activity of a new date.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import boto3

from adapters import settings
from adapters.platform import aws
from adapters.settings.engagement import EventsStreamSettings
from bench.engagement.naive import Naive, definitions
from bench.engagement.units import WriteUnits
from bench.engagement.workload import (
    BATCH,
    DAY,
    DAY_ONE,
    PER_USER,
    Body,
    Record,
    bodies,
    record,
    users,
)
from bench.figure import Figure
from ingest.engagement.accept import AcceptStatus
from ingest.engagement.wiring import acceptor
from ingest.web.caller import Caller
from local.cloud.dynamodb_engine import Engine, running
from processors import engagement

BUDGETS = {1: 1.0, 5: 0.5, 20: 0.4}
CALLER = Caller("", is_admin=True)
Design = Callable[[Sequence[Body], int], None]


def run() -> Iterator[Figure]:
    """Yield the ratios."""
    with running() as engine:
        os.environ.update(engine.environment())
        bench = Bench(engine, engine.client("dynamodb"), WriteUnits())
        bench.units.watch(aws.client("dynamodb"))
        for per_user in PER_USER:
            yield from bench.figures(per_user)


@dataclass(frozen=True, slots=True)
class Bench:
    """An engine, a client of it whose writes are not counted, and the count."""

    engine: Engine
    dynamodb: Any
    units: WriteUnits

    def figures(self, per_user: int) -> Iterator[Figure]:
        """Yield one load's ratios: one has the budget, two are for comparison."""
        ours = self._measure(self._ours, "", per_user)
        naive = self._measure(self._naive(f"Naive{per_user}", "ALL"), f"Naive{per_user}", per_user)
        slim = self._measure(self._naive(f"Slim{per_user}", "KEYS_ONLY"), f"Slim{per_user}", per_user)
        claim = f"write units, {per_user} a user and batch, of naive"
        detail = f"{ours:.2f} against {naive:.2f} units an event"
        yield Figure(claim, ours / naive, "<=", BUDGETS[per_user], detail)
        detail = f"{ours:.2f} against {slim:.2f} units an event"
        yield Figure("  naive's indexes KEYS_ONLY", ours / slim, detail=detail)
        # INDEX_IDEMPOTENCY_KEYS=true writes IdempotencyIndex too: one unit an event, not measured here.
        detail = f"{ours + 1:.2f} against {naive:.2f} units an event"
        yield Figure("  ours with keys indexed, computed", (ours + 1) / naive, detail=detail)

    def _measure(self, design: Design, prefix: str, per_user: int) -> float:
        """Open the accounts, then return the units an event of the next date."""
        who = users(per_user)
        design(bodies(who, 1, DAY_ONE), 0)
        self.units.take()
        design(bodies(who, per_user, DAY_ONE + DAY), 1)
        taken = self.units.take()
        self._check(prefix, who, per_user)
        return taken / BATCH

    def _ours(self, sent: Sequence[Body], day: int) -> None:
        now = DAY_ONE + day * DAY + DAY / 4
        results = acceptor(settings.read(EventsStreamSettings)).accept(sent, CALLER, now)
        assert all(result.status is AcceptStatus.ACCEPTED for result in results)
        ids = [result.event_id or "" for result in results]
        outcome = engagement._parts()[0].apply(self._records("", sent, ids), now + DAY / 1000)
        assert outcome.applied == len(sent), outcome

    def _naive(self, prefix: str, projection: str) -> Design:
        resource = self._resource()
        self.units.watch(resource.meta.client)
        for table in definitions(prefix, projection):
            self.dynamodb.create_table(**table)
        naive = Naive(resource, prefix)

        def apply(sent: Sequence[Body], day: int) -> None:
            ids = [naive.ingest(body, DAY_ONE + day * DAY) for body in sent]
            naive.handler({"Records": self._records(prefix, sent, ids)})

        return apply

    def _resource(self) -> Any:
        return boto3.resource("dynamodb", endpoint_url=self.engine.endpoint)

    def _records(self, prefix: str, sent: Sequence[Body], ids: Sequence[str]) -> list[Record]:
        """Return the stored events as records of the table's stream."""
        keys = [
            {"user_id": {"S": body["user_id"]}, "event_id": {"S": event_id}}
            for body, event_id in zip(sent, ids, strict=True)
        ]
        table = prefix + "BPEvents"
        images = [self.dynamodb.get_item(TableName=table, Key=key)["Item"] for key in keys]
        return [record(number, image) for number, image in enumerate(images)]

    def _check(self, prefix: str, who: Sequence[str], per_user: int) -> None:
        """Check that both designs have the same result: streak, points, balance, and the date's counts."""
        points = 10 * (per_user + 1)
        expected = (2, 2, points, points, per_user, 10 * per_user)
        for user in who:
            assert self._state(prefix, user) == expected, (prefix, self._state(prefix, user), expected)

    def _state(self, prefix: str, user: str) -> tuple[int, ...]:
        profile = self._newest(prefix + "UserStreaks", "user_id", user)
        day = self._newest(prefix + "DailyActivity", "user_id", user)
        entry = self._newest(prefix + "RewardsLedger", "account_id", user)
        assert day["activity_date"] == {"S": (DAY_ONE + DAY).date().isoformat()}
        values = [profile[name] for name in ("current_streak", "longest_streak", "total_bestie_points")]
        values += [entry["balance"], day["events_count"], day["points_earned"]]
        return tuple(int(value["N"]) for value in values)

    def _newest(self, table: str, key: str, user: str) -> dict[str, Any]:
        found = self.dynamodb.query(
            TableName=table,
            KeyConditionExpression=f"{key} = :user",
            ExpressionAttributeValues={":user": {"S": user}},
            ScanIndexForward=False,
            Limit=1,
        )
        item: dict[str, Any] = found["Items"][0]
        return item
