"""Measures friends: a request, its acceptance, and the list of somebody with a friend since ten years."""

from copy import deepcopy
from datetime import timedelta

from adapters.platform.items import Item, encode_item
from bench.counting.desk import Desk, PathCosts
from bench.counting.requests import http
from bench.units.engagement import DAY, USER_ID, cost_of_request
from rules.days import stamp
from tests.support.ten_years import YEARS, TenYears


def friend_paths(desk: Desk) -> PathCosts:
    """Yield a request and its acceptance; then the first read of a pair of ten years, and a later one.

    Both miss a date a fortnight, so their days do not follow from their profiles. Each further friend costs
    as much as one of both.
    """
    user, *friends = (USER_ID.format(number) for number in range(2))
    for name, one, other in (("request", user, friends[0]), ("accept", friends[0], user)):
        desk.tick(timedelta(minutes=5))
        desk.start_path()
        answer = desk.call("UsersApiFunction", http("PUT", f"/v1/users/{one}/friends/{other}", {}, sub=one))
        assert answer["statusCode"] == 200, answer
        yield f"friends.{name}", desk.take_costs()
    items = TenYears(user, desk.now.date() - DAY).items()
    since = stamp(desk.now - YEARS * timedelta(days=365))
    for other in (user, *friends):
        for table in ("UserStreaks", "DailyActivity"):
            desk.tables.put(table, [_of(item, other) for item in items[table]])
    ties = [{"user_id": user, "friend_id": friend, "state": "friend", "since": since} for friend in friends]
    desk.tables.put("Friends", [encode_item(tie | {"pair_id": "0" * 32}) for tie in ties])
    for name in ("first", "again"):
        yield f"friends.read.{name}", cost_of_request(desk, user, f"/v1/users/{user}/friends")


def _of(item: Item, user: str) -> Item:
    return deepcopy(item) | {"user_id": {"S": user}}
