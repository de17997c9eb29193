"""Measures the event path of the usual design (bench/naive.py), on tables of its own."""

from collections.abc import Sequence
from typing import Any

import boto3
import botocore.session

from bench.counting.desk import Desk, PathCosts, Units, attach
from bench.counting.dynamodb_units import shape_of
from bench.counting.requests import Body, Record, bodies, record
from bench.naive import Naive, definitions
from bench.units.engagement import DAY, HOUR, USER_ID

PREFIX = "Naive"
EVENT_COUNTS = (1, 5)  # each further event costs the same


def naive_at(desk: Desk) -> Naive:
    """Return the usual design, with its tables on a desk."""
    for definition in definitions(PREFIX):
        shape = shape_of(definition)
        desk.meter.shapes[shape.name] = shape
        desk.tables.create(definition)
    session = botocore.session.get_session()  # boto3's resources change the session that they are made of
    attach(session, desk.services, desk.meter)
    resource: Any = boto3.Session(botocore_session=session).resource("dynamodb")
    return Naive(resource, PREFIX)


def ingest_as_records(desk: Desk, naive: Naive, events: Sequence[Body]) -> list[Record]:
    """Let the usual design store events; returns the records of its table's stream."""
    records = []
    for number, body in enumerate(events):
        event_id = naive.ingest(body, desk.now)
        key = {"user_id": {"S": body["user_id"]}, "event_id": {"S": event_id}}
        records.append(record(number, desk.tables.read(f"{PREFIX}BPEvents", key) or {}))
    return records


def naive_paths(desk: Desk) -> PathCosts:
    """Yield posts of a user with an account, the first of a date. Its indexes hold all attributes."""
    naive = naive_at(desk)
    for number, count in enumerate(EVENT_COUNTS):
        user = USER_ID.format(2 * 10**6 + number)
        desk.tick(DAY)
        _cost_of_events(desk, naive, user, 1)
        desk.tick(DAY)
        yield f"naive.next.{count}", _cost_of_events(desk, naive, user, count)


def _cost_of_events(desk: Desk, naive: Naive, user: str, count: int) -> dict[str, Units]:
    desk.start_path()
    records = ingest_as_records(desk, naive, bodies([user], count, desk.now - HOUR))
    _add_cost(desk, "NaiveDoor", count)
    naive.handler({"Records": records})
    _add_cost(desk, "NaiveProcessor", 1)
    return desk.take_costs()


def _add_cost(desk: Desk, function: str, invocations: int) -> None:
    """Add what the meter has counted, under the names that our tables have."""
    counts = {name.replace(PREFIX, "", 1): count for name, count in desk.meter.take_counts().items()}
    desk.add_cost(function, {"invocations": invocations, **counts})
