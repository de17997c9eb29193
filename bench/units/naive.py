"""The event path of the usual design (bench/naive.py), on tables of its own."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import boto3
import botocore.session

from bench.counting.desk import Desk, Units, attach
from bench.counting.requests import Body, Record, bodies, record
from bench.counting.table_shapes import shape_of
from bench.naive import Naive, definitions
from bench.units.engagement import USER_ID

PREFIX = "Naive"
SIZES = (1, 5)  # it costs the same for each event
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def naive_at(desk: Desk) -> Naive:
    """Return the usual design, with its tables on a desk."""
    for definition in definitions(PREFIX):
        shape = shape_of(definition)
        desk.meter.shapes[shape.name] = shape
        desk.past.create(definition)
    session = botocore.session.get_session()  # boto3's resources change the session that they are made of
    attach(session, desk.services, desk.meter)
    resource: Any = boto3.Session(botocore_session=session).resource("dynamodb")
    return Naive(resource, PREFIX)


def records_of(desk: Desk, stored: Sequence[tuple[Body, str]]) -> list[Record]:
    """Return stored events as records of the table's stream. stored: each with its event_id."""
    keys = [{"user_id": {"S": body["user_id"]}, "event_id": {"S": each}} for body, each in stored]
    images = [desk.past.peek(f"{PREFIX}BPEvents", key) for key in keys]
    return [record(number, image or {}) for number, image in enumerate(images)]


def naive_paths(desk: Desk) -> Iterator[tuple[str, dict[str, Units]]]:
    """Yield posts of a user with an account, the first of a date. Its indexes hold all attributes."""
    naive = naive_at(desk)
    for at, size in enumerate(SIZES):
        user = USER_ID.format(2 * 10**6 + at)
        desk.tick(DAY)
        _post(desk, naive, user, 1)
        desk.tick(DAY)
        yield f"naive.next.{size}", _post(desk, naive, user, size)


def _post(desk: Desk, naive: Naive, user: str, size: int) -> dict[str, Units]:
    desk.forget()
    desk.meter.take()
    stored = []
    for body in bodies([user], size, desk.now - HOUR):
        stored.append((body, naive.ingest(body, desk.now)))
        _spend(desk, "NaiveDoor")
    naive.handler({"Records": records_of(desk, stored)})
    _spend(desk, "NaiveProcessor")
    return desk.take()


def _spend(desk: Desk, function: str) -> None:
    counts = {name.replace(PREFIX, "", 1): count for name, count in desk.meter.take().items()}
    desk.note(function, {"invocations": 1, **counts})
    desk.meter.take_changes()
