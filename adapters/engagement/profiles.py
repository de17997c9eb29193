"""Reads all users' profiles."""

import math
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

from adapters.engagement.account_items import profile_from
from adapters.platform.items import Item, decode_item, encode_item
from rules.engagement.account_state import Profile
from rules.engagement.boards import Standings

# Of the table, read at the same time: one is decoded while others are on their way.
SEGMENTS = 4
# `timezone` is a word of DynamoDB's own.
COUNTED = "user_id, #zone, total_bestie_points, current_streak, lapses_at, alias"


def all_profiles(dynamodb: Any, table: str, after: str = "") -> Iterator[tuple[list[Profile], str]]:
    """Yield pages of all profiles, as they are now, each with the id after which the next begins; "" ends.

    A profile that somebody has damaged is left out; the nightly run repairs it.
    """
    begin = {"ExclusiveStartKey": encode_item({"user_id": after})} if after else {}
    for page, following in _pages(dynamodb, TableName=table, ConsistentRead=True, **begin):
        yield [profile for each in page if (profile := _profile(each))], following


def _profile(item: Item) -> Profile | None:
    try:
        return profile_from(decode_item(item))
    except (KeyError, TypeError, ValueError):
        return None


def count_scores(dynamodb: Any, table: str, now: datetime, until: float = math.inf) -> Standings:
    """Count all users' scores, as they were about a second ago, at half the price.

    A profile that somebody has damaged is left out; the nightly run repairs it. Raises TimeoutError at the
    monotonic second `until`.
    """
    counted, lock = Standings(now), threading.Lock()

    def count(segment: int) -> None:
        for page, _ in _pages(
            dynamodb,
            TableName=table,
            Segment=segment,
            TotalSegments=SEGMENTS,
            ProjectionExpression=COUNTED,
            ExpressionAttributeNames={"#zone": "timezone"},
        ):
            rows = [row for each in page if (row := _row(each))]
            with lock:
                for row in rows:
                    counted.add(*row)
            if time.monotonic() >= until:
                raise TimeoutError(f"{counted.users} users were counted when the time was up")

    with ThreadPoolExecutor(SEGMENTS) as pool:
        list(pool.map(count, range(SEGMENTS)))
    return counted


def _pages(dynamodb: Any, **request: Any) -> Iterator[tuple[list[Item], str]]:
    while True:
        page = dynamodb.scan(**request)
        yield page["Items"], page.get("LastEvaluatedKey", {"user_id": {"S": ""}})["user_id"]["S"]
        if "LastEvaluatedKey" not in page:
            return
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def _row(profile: Item) -> tuple[str, str, int, int, int, str] | None:
    """Return user, zone, points, streak, when that lapses, and alias; None for a damaged profile."""
    none = {"N": "0"}
    try:
        return (
            profile["user_id"]["S"],
            profile["timezone"]["S"],
            int(profile["total_bestie_points"]["N"]),
            int(profile.get("current_streak", none)["N"]),
            int(profile.get("lapses_at", none)["N"]),
            profile.get("alias", {"S": ""})["S"],
        )
    except (KeyError, ValueError):
        return None
