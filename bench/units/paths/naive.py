"""The event path of the naive design (bench/engagement/naive.py), on tables of its own."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import boto3

from adapters.platform import aws
from bench.counting.desk import Desk, Units
from bench.counting.table_shapes import shape_of
from bench.engagement.naive import Naive, definitions
from bench.engagement.workload import bodies, record
from bench.units.paths.engagement import USER_ID

PREFIX = "Naive"
SIZES = (1, 5)  # it costs the same for each event
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def naive_paths(desk: Desk) -> Iterator[tuple[str, dict[str, Units]]]:
    """Yield posts of a user with an account: the first of a date, and a further one. Its indexes hold all."""
    for definition in definitions(PREFIX, "ALL"):
        shape = shape_of(definition)
        desk.meter.shapes[shape.name] = shape
        desk.past.create(definition)
    resource: Any = boto3.Session(botocore_session=aws._session()).resource("dynamodb")
    naive = Naive(resource, PREFIX)
    for at, size in enumerate(SIZES):
        user = USER_ID.format(2 * 10**6 + at)
        desk.tick(DAY)
        _post(desk, naive, user, 1)
        desk.tick(DAY)
        yield f"naive.next.{size}", _post(desk, naive, user, size)
        desk.tick(timedelta(minutes=30))
        yield f"naive.again.{size}", _post(desk, naive, user, size)


def _post(desk: Desk, naive: Naive, user: str, size: int) -> dict[str, Units]:
    desk.forget()
    desk.meter.take()
    ids = []
    for body in bodies([user], size, desk.now - HOUR):
        ids.append(naive.ingest(body, desk.now))
        _spend(desk, "NaiveDoor")
    keys = [{"user_id": {"S": user}, "event_id": {"S": each}} for each in ids]
    images = [desk.past.peek(f"{PREFIX}BPEvents", key) for key in keys]
    naive.handler({"Records": [record(number, image or {}) for number, image in enumerate(images)]})
    _spend(desk, "NaiveProcessor")
    return desk.take()


def _spend(desk: Desk, function: str) -> None:
    counts = {name.replace(PREFIX, "", 1): count for name, count in desk.meter.take().items()}
    desk.note(function, {"invocations": 1, **counts})
    for table, _, _ in desk.meter.take_changes():
        desk.note(function, {f"to.NaivePublisher.{table.removeprefix(PREFIX)}": 1})
