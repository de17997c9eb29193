"""Repairs of profiles and days, which are read as items, even damaged ones.

account_store.py writes all other changes of them.

A writer who changes an item changes its marks, such as a profile's version. A repair is written on condition
that the marks are as they were read, whatever their type. So it never overwrites another writer's change.
"""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from adapters.platform.items import Item, encode_item
from adapters.platform.tables import chunks, get_all, get_one, query_all, write_if

# Every writer of a profile or a day changes at least one of these attributes.
PROFILE_MARKS = ("version", "ledger_head", "streak_updated_at")
LOWERED_MARKS = (*PROFILE_MARKS, "lapses_at", "run_length")  # of a lapsed streak
LOWERING_THREADS = 8
DAY_MARKS = ("ledger_head", "events_count", "points_earned")


class RepairOvertaken(Exception):
    """Another writer has changed the item since it was read."""


class Projections:
    """The items of UserStreaks and DailyActivity."""

    def __init__(self, dynamodb: Any, profiles: str, days: str) -> None:
        self._dynamodb, self._profiles, self._days = dynamodb, profiles, days

    def scan_profiles(self, segment: int, segments: int) -> Iterator[list[Item]]:
        """Yield a segment of all profiles, page by page; eventually consistent."""
        request: dict[str, Any] = {"TableName": self._profiles, "Segment": segment, "TotalSegments": segments}
        while True:
            page = self._dynamodb.scan(**request)
            yield page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def some_days(self, keys: Iterable[Mapping[str, str]]) -> Iterator[list[Item]]:
        """Yield those days of these keys that are stored, up to 1,000 at a time."""
        for chunk in chunks(keys, 1000):
            yield get_all(self._dynamodb, self._days, chunk)

    def some_profiles(self, user_ids: Iterable[str]) -> Iterator[list[Item]]:
        """Yield those profiles of these users that are stored, up to 1,000 at a time."""
        for chunk in chunks(({"user_id": each} for each in user_ids), 1000):
            yield get_all(self._dynamodb, self._profiles, chunk)

    def profile(self, user_id: str) -> Item | None:
        """Read one profile, strongly consistent."""
        return get_one(self._dynamodb, self._profiles, {"user_id": user_id})

    def days(self, user_id: str) -> dict[str, Item]:
        """Read a user's days by date, strongly consistent."""
        items = query_all(
            self._dynamodb,
            TableName=self._days,
            KeyConditionExpression="user_id = :user",
            ExpressionAttributeValues=encode_item({":user": user_id}),
            ConsistentRead=True,
        )
        return {item["activity_date"]["S"]: item for item in items}

    def put_profile(self, new: Item, before: Item | None) -> None:
        """Put a profile in place of the one that was read; raises RepairOvertaken."""
        condition = unchanged_condition(before, PROFILE_MARKS)
        self._write(self._dynamodb.put_item, self._profiles, condition, Item=new)

    def put_day(self, new: Item, before: Item | None) -> None:
        """Put a day in place of the one that was read; raises RepairOvertaken."""
        self._write(self._dynamodb.put_item, self._days, unchanged_condition(before, DAY_MARKS), Item=new)

    def delete_day(self, before: Item) -> None:
        """Delete a day that should not exist; raises RepairOvertaken."""
        key = {name: before[name] for name in ("user_id", "activity_date")}
        self._write(self._dynamodb.delete_item, self._days, unchanged_condition(before, DAY_MARKS), Key=key)

    def lower_all(self, lapsed: Iterable[Item]) -> list[bool | BaseException]:
        """Lower lapsed streaks (lower); returns the result or the error of each. Runs side by side."""
        with ThreadPoolExecutor(LOWERING_THREADS) as pool:
            futures = [pool.submit(self.lower, item) for item in lapsed]
        return [future.exception() or future.result() for future in futures]

    def lower(self, before: Item) -> bool:
        """Show a lapsed streak as 0 and take it out of the leaderboard's index.

        before: the profile's item, with at least the user, current_streak and LOWERED_MARKS. The version
        stays, because no answer to a user changes. Returns False if another writer was first.
        """
        values = {":zero": {"N": "0"}, ":run": before["current_streak"]}
        try:
            self._write(
                self._dynamodb.update_item,
                self._profiles,
                unchanged_condition(before, LOWERED_MARKS, values=values),
                Key={"user_id": before["user_id"]},
                UpdateExpression="SET current_streak = :zero, run_length = :run REMOVE leaderboard_partition",
            )
        except RepairOvertaken:
            return False
        return True

    def _write(self, operation: Any, table: str, condition: dict[str, Any], **arguments: Any) -> None:
        if not write_if(operation, TableName=table, **condition, **arguments):
            raise RepairOvertaken(table)


def unchanged_condition(
    before: Item | None, marks: Iterable[str], key: str = "user_id", values: Item | None = None
) -> dict[str, Any]:
    """Return the condition that an item has not changed since it was read, as arguments of DynamoDB.

    before: the item; None: there was none. key: the attribute that every item of the table has. values: those
    of an update's own expression, which the condition's values join.
    """
    if before is None:
        return {"ConditionExpression": f"attribute_not_exists({key})"}
    parts, names, all_values = [f"attribute_exists({key})"], {}, dict(values or {})
    for index, mark in enumerate(marks):
        names[f"#m{index}"] = mark
        if mark in before:
            all_values[f":m{index}"] = before[mark]
            parts.append(f"#m{index} = :m{index}")
        else:
            parts.append(f"attribute_not_exists(#m{index})")
    condition = {"ConditionExpression": " AND ".join(parts), "ExpressionAttributeNames": names}
    return condition | ({"ExpressionAttributeValues": all_values} if all_values else {})
