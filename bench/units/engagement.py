"""Measures the event path (door, processor, publisher), and what users read and redeem.

The publisher is handed many rows of one hour at once, because it may put one or many of them into a record.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import cycle, islice
from math import ceil
from typing import Any

from adapters.engagement.account_items import profile_attributes, profile_from
from adapters.platform.items import decode_item, encode_item
from bench.counting.desk import Desk, PathCosts, Units
from bench.counting.requests import ADMIN, FULFILMENT, Body, Record, bodies, http
from rules.engagement.boards import BOARDS
from tests.support.dynamodb_engine import CONSTANTS

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
# User ids and keys are UUIDs, as usual: their length decides the size of items.
USER_ID = "5f0f8a43-0b1f-4a2f-8c11-{:012}"
REDEMPTION = {"idempotency_key": "0d5f3c1e-7b0e-5f0f-8a43-0b1f9a2f6c11", "points": 10, "reward_id": "mug"}
EVENT_COUNTS = (1, 5, 20)  # events of a user in one request; twenty just reach the daily cap
CROWD_SIZES = (40, 160)  # users on the boards
SHARDS = int(CONSTANTS["LEADERBOARD_SHARDS"])
PUBLISHER = "PublisherFunction"
ROW_COUNTS = (1, 100)
BILLED_STEP_BYTES = 5120  # Firehose rounds each record up to these


def post_events(desk: Desk, events: Sequence[Body]) -> list[str]:
    """Post events, which then wait for the processor; returns the status of each."""
    response = desk.call("EventsApiFunction", http("POST", "/v1/events", {"events": events}, groups=ADMIN))
    assert response["statusCode"] == 202, response
    desk.tick()
    return [result["status"] for result in json.loads(response["body"])["results"]]


def apply_posted(desk: Desk, events: Sequence[Body]) -> None:
    """Post new events, and let the processor apply them."""
    assert set(post_events(desk, events)) == {"accepted"}
    desk.consume("EngagementFunction", "BPEvents")


def apply_events(desk: Desk, user: str, count: int, *, days: int = 0) -> list[Body]:
    """Apply `count` new events of a user, on the date that is `days` after the desk's; returns them."""
    events = bodies([user], count, desk.now - HOUR + days * DAY)
    apply_posted(desk, events)
    return events


def event_paths(desk: Desk) -> PathCosts:
    """Yield posts of a user: the account's first, the next date's, a further one of a date, rarer ones."""
    users = (USER_ID.format(number) for number in range(10**6))
    for count in EVENT_COUNTS:
        user = next(users)
        desk.start_path()
        apply_events(desk, user, count)
        yield f"events.first.{count}", desk.take_costs()
        desk.tick(DAY)
        yield f"events.next.{count}", _cost_of_events(desk, user, count)
    for count in EVENT_COUNTS:
        desk.tick(DAY)
        _check_in(desk, user)
        yield f"events.again.{count}", _cost_of_events(desk, user, count)
    yield from _rarer_event_paths(desk, users)


def _cost_of_events(desk: Desk, user: str, count: int, *, days: int = 0) -> dict[str, Units]:
    desk.tick(timedelta(minutes=30))
    desk.start_path()
    apply_events(desk, user, count, days=days)
    return desk.take_costs()


def _check_in(desk: Desk, user: str) -> None:
    """Make today an active date. A check-in leaves the daily cap of lessons untouched."""
    apply_posted(desk, bodies([user], 1, desk.now - HOUR, "CHECK_IN"))


def _returned_user(desk: Desk, user: str) -> str:
    """Return a user with two active dates and then five days without any."""
    apply_events(desk, user, 1)
    desk.tick(DAY)
    _check_in(desk, user)
    desk.tick(5 * DAY)
    return user


def _rarer_event_paths(desk: Desk, users: Iterator[str]) -> PathCosts:
    """Yield a streak that starts again, an event of an older date, events of several dates, repetitions
    (the first of them waits until the events are applied, which they are).
    """
    user = _returned_user(desk, next(users))
    apply_events(desk, user, 1)
    desk.tick(5 * DAY)
    yield "events.restart.1", _cost_of_events(desk, user, 1)
    user = _returned_user(desk, next(users))
    apply_events(desk, user, 1)
    desk.tick(timedelta(minutes=30))
    yield "events.late.1", _cost_of_events(desk, user, 1, days=-3)
    user = _returned_user(desk, next(users))
    desk.start_path()
    oldest = desk.now - HOUR - 4 * DAY
    apply_posted(desk, [body for day in range(5) for body in bodies([user], 1, oldest + day * DAY)])
    yield "events.dates.5", desk.take_costs()
    events = apply_events(desk, next(users), 5)
    desk.start_path()
    request = http("POST", "/v1/events", {"events": events}, groups=ADMIN)
    request["headers"]["prefer"] = "wait=2"
    assert desk.call("EventsApiFunction", request)["statusCode"] == 200
    yield "events.waited.5", desk.take_costs()
    desk.tick(HOUR)
    desk.start_path()
    assert set(post_events(desk, events)) == {"duplicate"}
    yield "events.repeated.5", desk.take_costs()


def reading_paths(desk: Desk) -> PathCosts:
    """Yield what a user reads, and a redemption."""
    user = USER_ID.format(10**6)
    apply_events(desk, user, 5)
    yield "read.profile", cost_of_request(desk, user, f"/v1/users/{user}")
    yield "read.ledger", cost_of_request(desk, user, f"/v1/users/{user}/ledger")
    yield "redeem", cost_of_request(desk, user, f"/v1/users/{user}/redemptions", REDEMPTION)


def board_paths(desk: Desk) -> PathCosts:
    """Yield a snapshot of the boards; then top lists, and the rank of a user in the middle."""
    for size in CROWD_SIZES:
        user = _put_crowd(desk, size)[size // 2]
        desk.tick(HOUR)
        desk.start_path()
        desk.call("RanksFunction", {})
        yield f"board.snapshot.{size}", desk.take_costs()
        for board in BOARDS:
            path = f"/v1/leaderboards/{board}"
            yield f"board.{board}.top.{size}", cost_of_request(desk, user, path)
            yield f"board.{board}.rank.{size}", cost_of_request(desk, user, f"{path}/users/{user}")


def cost_of_request(desk: Desk, user: str, path: str, body: Body | None = None) -> dict[str, Units]:
    """Return what it costs that a user reads a path, or posts a body to it as the fulfilment service."""
    desk.tick(timedelta(minutes=5))
    desk.start_path()
    event = http("POST" if body else "GET", path, body, sub=user, groups=FULFILMENT if body else "")
    response = desk.call("UsersApiFunction", event)
    assert response["statusCode"] in (200, 201), (path, response)
    return desk.take_costs()


def _put_crowd(desk: Desk, size: int) -> list[str]:
    """Put profiles into the table, each with a longer streak and more points than the one before it.

    Returns the ids of their users. All are copies of a profile that the processor made.
    """
    model = USER_ID.format(10**7)
    apply_events(desk, model, 5)
    stored: Any = desk.tables.read("UserStreaks", {"user_id": {"S": model}})
    profile = replace(profile_from(decode_item(stored)), version=1)
    assert profile.streak
    users = [USER_ID.format(10**7 + number) for number in range(1, size + 1)]
    items = []
    for number, user in enumerate(users, start=1):
        streak = replace(profile.streak, length=number, longest=number)
        copy = replace(profile, user_id=user, streak=streak, total_points=10 * number)
        items.append(encode_item(profile_attributes(copy, SHARDS)))
    desk.tables.put("UserStreaks", items)
    return users


def publishing_paths(desk: Desk, rows: Mapping[str, list[Record]]) -> PathCosts:
    """Yield, for each table, the cost of ROW_COUNTS of its rows. rows: stream records by table."""
    for table, records in sorted(rows.items()):
        for count in ROW_COUNTS:
            desk.start_path()
            desk.call(PUBLISHER, {"Records": list(islice(cycle(records), count))})
            sizes = [len(row) for row in desk.services.rows]
            billed = sum(max(1, ceil(size / BILLED_STEP_BYTES)) * BILLED_STEP_BYTES for size in sizes)
            counts = {"records": len(sizes), "bytes": sum(sizes), "billed_bytes": billed}
            desk.add_cost(PUBLISHER, {f"firehose.{name}": count for name, count in counts.items()})
            yield f"publish.{table}.{count}", desk.take_costs()


def engagement_rows(desk: Desk) -> dict[str, list[Record]]:
    """Return a row of each table of engagement, after ordinary events."""
    user = "0d5f3c1e-7b0e-4f0f-8a43-000000000000"  # of no other path
    apply_events(desk, user, 1)
    desk.tick(DAY)
    desk.start_path()
    apply_events(desk, user, 2)
    return newest_rows(desk)


def newest_rows(desk: Desk) -> dict[str, list[Record]]:
    """Return the newest row that waits for the publisher, by table, as a list of one."""
    return {table: rows[-1:] for (function, table), rows in desk.streams.items() if function == PUBLISHER}
