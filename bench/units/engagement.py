"""The event path: door, processor, publisher; and what users read and buy."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from adapters.engagement.account_items import profile_attributes, profile_from
from adapters.platform.items import decode_item, encode_item
from bench.counting.desk import Desk, Units
from bench.counting.requests import ADMIN, FULFILMENT, Body, bodies, http
from rules.engagement.boards import BOARDS
from tests.support.dynamodb_engine import CONSTANTS

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
# A user id and a key of the usual length: uuids.
USER_ID = "5f0f8a43-0b1f-4a2f-8c11-{:012}"
EVENTS = (1, 5, 20)  # of a user at once; twenty just reach the daily cap
CROWDS = (40, 160)  # users on the boards
SHARDS = int(CONSTANTS["LEADERBOARD_SHARDS"])
Measured = Iterator[tuple[str, dict[str, Units]]]


def post(desk: Desk, sent: Sequence[Body], *, applies: bool = True) -> list[dict[str, Any]]:
    """Post events; returns the results. applies: what is stored is handed to the processor."""
    answered = desk.call("EventsApiFunction", http("POST", "/v1/events", {"events": sent}, groups=ADMIN))
    assert answered["statusCode"] == 202, answered
    desk.tick()
    if applies:
        desk.consume("EngagementFunction", "BPEvents")
    results: list[dict[str, Any]] = json.loads(answered["body"])["results"]
    return results


def apply(desk: Desk, user: str, count: int, *, days: int = 0) -> list[Body]:
    """Post so many events of the date that lies so many days after the desk's; returns them."""
    sent = bodies([user], count, desk.now - HOUR + days * DAY)
    assert all(each["status"] == "accepted" for each in post(desk, sent))
    return sent


def event_paths(desk: Desk) -> Measured:
    """Yield posts of a user: the account's first, the next date's, a further one of a date, rarer ones."""
    users = (USER_ID.format(number) for number in range(10**6))
    for count in EVENTS:
        desk.forget()
        apply(desk, user := next(users), count)
        yield f"events.first.{count}", desk.take()
        desk.tick(DAY)
        yield f"events.next.{count}", _measured(desk, user, count)
    for count in EVENTS:
        desk.tick(DAY)
        _check_in(desk, user)
        yield f"events.again.{count}", _measured(desk, user, count)
    yield from _rarer(desk, users)


def _measured(desk: Desk, user: str, count: int) -> dict[str, Units]:
    desk.tick(timedelta(minutes=30))
    desk.forget()
    apply(desk, user, count)
    return desk.take()


def _with_account(desk: Desk, user: str) -> str:
    """Open an account with two dates. The newest has a check-in, so the cap of lessons is untouched."""
    apply(desk, user, 1)
    desk.tick(DAY)
    _check_in(desk, user)
    return user


def _check_in(desk: Desk, user: str) -> None:
    post(desk, bodies([user], 1, desk.now - HOUR, "CHECK_IN"))


def _rarer(desk: Desk, users: Iterator[str]) -> Measured:
    """Yield what is rarer: a streak that starts again, an older date, several dates, repeats."""
    user = _with_account(desk, next(users))
    desk.tick(5 * DAY)
    apply(desk, user, 1)
    desk.tick(5 * DAY)
    yield "events.restart.1", _measured(desk, user, 1)
    user = _with_account(desk, next(users))
    desk.tick(5 * DAY)
    apply(desk, user, 1)
    desk.tick(HOUR)
    desk.forget()
    apply(desk, user, 1, days=-3)
    yield "events.late.1", desk.take()
    user = _with_account(desk, next(users))
    desk.tick(5 * DAY)
    desk.forget()
    start = desk.now - HOUR
    post(desk, [body for day in range(5) for body in bodies([user], 1, start - (4 - day) * DAY)])
    yield "events.dates.5", desk.take()
    yield from _repeated(desk, next(users))


def _repeated(desk: Desk, user: str) -> Measured:
    sent = apply(desk, user, 5)
    desk.tick(HOUR)
    desk.forget()
    assert all(each["status"] == "duplicate" for each in post(desk, sent))
    yield "events.repeated.5", desk.take()


def reading_paths(desk: Desk) -> Measured:
    """Yield what a user asks for and buys."""
    me = USER_ID.format(10**6)
    apply(desk, me, 5)
    yield "read.profile", ask(desk, "read.profile", f"/v1/users/{me}", me)
    yield "read.ledger", ask(desk, "read.ledger", f"/v1/users/{me}/ledger", me)
    path = f"/v1/users/{me}/redemptions"
    yield "redeem", ask(desk, "redeem", path, me, body=redemption(), groups=FULFILMENT)


def board_paths(desk: Desk) -> Measured:
    """Yield the count of everybody; then top lists and the rank of a user in the middle."""
    for users in CROWDS:
        crowd = _crowd(desk, users)
        me = crowd[users // 2]
        desk.tick(HOUR)
        desk.forget()
        desk.call("RanksFunction", {})
        yield f"board.snapshot.{users}", desk.take()
        for board in BOARDS:
            for name, path in ((f"top.{users}", ""), (f"rank.{users}", f"/users/{me}")):
                stem = f"board.{board}.{name}"
                yield stem, ask(desk, stem, f"/v1/leaderboards/{board}{path}", me)


def ask(
    desk: Desk,
    name: str,
    path: str,
    user: str,
    *,
    body: Body | None = None,
    groups: str = "",
    after: timedelta = timedelta(minutes=5),
) -> dict[str, Units]:
    """Let a user ask for something, or post a body; returns what that cost."""
    desk.tick(after)
    desk.forget()
    event = http("POST" if body else "GET", path, body, sub=user, groups=groups)
    answered = desk.call("UsersApiFunction", event)
    assert answered["statusCode"] in (200, 201), (name, answered)
    return desk.take()


def _crowd(desk: Desk, count: int) -> list[str]:
    """Put the accounts of so many users into the tables, each with a longer streak and more points."""
    apply(desk, model := USER_ID.format(10**7), 5)
    stored = desk.past.peek("UserStreaks", {"user_id": {"S": model}}) or {}
    profile = replace(profile_from(decode_item(stored)), version=1)
    users = [USER_ID.format(10**7 + 1 + number) for number in range(count)]
    crowd = []
    assert profile.streak
    for number, user in enumerate(users):
        streak = replace(profile.streak, length=1 + number, longest=1 + number)
        mine = replace(profile, user_id=user, streak=streak, total_points=10 * (1 + number))
        crowd.append(encode_item(profile_attributes(mine, SHARDS)))
    desk.past.put("UserStreaks", crowd)
    return users


def redemption() -> Body:
    """Return the body of a redemption."""
    return {"idempotency_key": "0d5f3c1e-7b0e-5f0f-8a43-0b1f9a2f6c11", "points": 10, "reward_id": "mug"}
