"""Write request units an event, from ingest to the last effect, compared with the naive design.

The emulator counts them. Users have open accounts; each batch is their first activity of a new date. The
plain loads have the same result in both designs, and that is checked. The mixes go beyond daily caps, come
late or twice, or come from a crowd of whom few have many events: the naive design gets those wrong, and is
measured all the same. A mix of two dates writes two days.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import boto3

from adapters import settings
from adapters.platform import aws
from adapters.settings.event_intake import EventsStreamSettings
from bench.engagement.naive import Naive, definitions
from bench.engagement.units import WriteUnits
from bench.engagement.workload import (
    BATCH,
    DAY,
    DAY_ONE,
    MIXES,
    PER_USER,
    Body,
    Mix,
    Record,
    bodies,
    crowd,
    record,
    users,
)
from bench.figure import Figure
from ingest.engagement.events import AcceptStatus, acceptor
from ingest.web.caller import Caller
from processors import engagement
from tests.support.dynamodb_engine import Engine, running

BUDGETS = {1: 1.0, 5: 0.48, 20: 0.39}
LATE_BUDGETS = {1: 1.03, 5: 0.5, 20: 0.39}  # a second date is a write more, which naive leaves out
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
        for mix in MIXES:
            for per_user in PER_USER:
                counts = [(f"{bench.loads}-{user}", per_user) for user in users(per_user)]
                budget = (LATE_BUDGETS if mix.late_every else BUDGETS)[per_user]
                yield bench.mixed(mix, f"{per_user} a user", counts, budget)
        counts = crowd(BATCH)
        budget = sum(number * budget_of(number) for _, number in counts) / BATCH
        yield bench.mixed(MIXES[1], f"{len(counts)} users of a crowd", counts, budget)


def budget_of(per_user: int) -> float:
    """Return the budget of a user's events in a batch: those of 1, 5 and 20, and lines between."""
    for (few, more), (many, less) in pairwise(BUDGETS.items()):
        if per_user <= many:
            return more + (less - more) * (per_user - few) / (many - few)
    return BUDGETS[20]


@dataclass(slots=True)
class Bench:
    """An engine, a client of it whose writes are not counted, and the count."""

    engine: Engine
    dynamodb: Any
    units: WriteUnits
    loads: int = 0

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
        # CreateIdempotencyIndex=true writes IdempotencyIndex too: one unit an event, not measured here.
        detail = f"{ours + 1:.2f} against {naive:.2f} units an event"
        yield Figure("  ours with keys indexed, computed", (ours + 1) / naive, detail=detail)

    def mixed(self, mix: Mix, load: str, counts: Sequence[tuple[str, int]], budget: float) -> Figure:
        """Return one mix's ratio. Both designs get what was sent, repetitions included."""
        self.loads += 1
        prefix = f"Mix{self.loads}"
        opened = [body for user, _ in counts for body in bodies([user], 1, DAY_ONE)]
        sent = mix.bodies(counts, DAY_ONE + DAY)
        units = []
        for design in (self._ours, self._naive(prefix, "ALL")):
            design(opened, 0)
            self.units.take()
            design(sent, 1)
            units.append(self.units.take() / len(sent))
        detail = f"{units[0]:.2f} against {units[1]:.2f} units an event"
        return Figure(f"write units, {mix.name}, {load}", units[0] / units[1], "<=", budget, detail)

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
        results = acceptor(settings.read_settings(EventsStreamSettings)).accept(sent, CALLER, now)
        known = {AcceptStatus.ACCEPTED, AcceptStatus.DUPLICATE}
        assert {result.status for result in results} <= known, results[0]
        stored = [
            (body, result.event_id or "")
            for body, result in zip(sent, results, strict=True)
            if result.status is AcceptStatus.ACCEPTED
        ]
        records = self._records("", [body for body, _ in stored], [event_id for _, event_id in stored])
        outcome = engagement._parts().apply(records, now + DAY / 1000)
        assert outcome.counts["applied"] == len({body["idempotency_key"] for body in sent}), outcome

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
