"""Measures what a board of a week adds to a snapshot of the boards, and a read of it.

The same crowd is counted under a book without boards and under one with a board. From the difference at two
sizes local/plan/cost.py works out what a million users cost.
"""

import random
from dataclasses import replace
from typing import Any

from adapters.book_store import shipped_document
from adapters.engagement.account_items import profile_attributes, profile_from
from adapters.platform.items import decode_item, encode_item
from bench.counting.desk import Desk, PathCosts
from bench.counting.requests import ADMIN, http
from bench.units.engagement import DAY, HOUR, SHARDS, USER_ID, apply_events, cost_of_request

CROWD_SIZES = (400, 1200)  # users; some pages of a standing
BOARDS = {"boards": {"weekly": {"per": "week"}}}


def bare_snapshots(desk: Desk) -> PathCosts:
    """Yield snapshots of crowds under the shipped book, which has no board of a period."""
    for size in CROWD_SIZES:
        _put_crowd(desk, size)
        yield f"board.period.none.{size}", _snapshot(desk)


def weekly_snapshots(desk: Desk) -> PathCosts:
    """Yield snapshots of the same crowds under a book with a board of a week, and a read of the board."""
    answer = desk.call(
        "RulesApiFunction",
        http("POST", "/v1/rules", {"book": shipped_document() | BOARDS, "effective": "now"}, groups=ADMIN),
    )
    assert answer["statusCode"] == 201, answer
    tick_to_thursday(desk)
    for size in CROWD_SIZES:
        _put_crowd(desk, size)
        yield f"board.period.week.{size}", _snapshot(desk)
    yield "board.period.read", cost_of_request(desk, USER_ID.format(200), "/v1/boards/weekly")


def tick_to_thursday(desk: Desk) -> None:
    """Let a week pass, so that a board that was declared now counts, and go on to a Thursday."""
    desk.tick(7 * DAY)
    while desk.now.isoweekday() != 4:
        desk.tick(DAY)


def _snapshot(desk: Desk) -> Any:
    desk.tick(HOUR)
    desk.start_path()
    desk.call("RanksFunction", {})
    return desk.take_costs()


def _put_crowd(desk: Desk, size: int) -> None:
    """Put copies of a profile that the processor made. A larger crowd has the smaller one in it."""
    model, chance = USER_ID.format(0), random.Random(1)
    apply_events(desk, model, 5)
    stored: Any = desk.tables.read("UserStreaks", {"user_id": {"S": model}})
    profile = profile_from(decode_item(stored))
    items = []
    for number in range(1, size):
        points = chance.randrange(10, 2000)
        counted = tuple(replace(each, points=points) for each in profile.period_points)
        # The ids of a page have nothing in common, as real ones.
        user = USER_ID.format(number) if number == 200 else f"{chance.getrandbits(128):032x}----"
        copy = replace(profile, user_id=user, total_points=points, period_points=counted)
        items.append(encode_item(profile_attributes(copy, SHARDS)))
    desk.tables.put("UserStreaks", items)
