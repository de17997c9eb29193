"""Days of a user as streaks read them, and what readers have settled of them: an item of DailyActivity.

Nobody but readers writes that item, and an event costs no write for it. Whoever has read days that change no
more keeps what they came to (rules.engagement.goals). So ten years are one item and the days of
two months. Losing it costs the next reader one read of all days.
"""

import zlib
from datetime import date
from typing import Any

from adapters.engagement.account_items import GOALS
from adapters.platform.items import item, plain
from adapters.platform.tables import query_all
from rules.engagement.goals import MeasuredDays, SettledGoals


class GoalStore:
    """The table DailyActivity, for streaks."""

    def __init__(self, dynamodb: Any, days: str) -> None:
        self._dynamodb, self._days = dynamodb, days

    def get(self, user_id: str) -> SettledGoals | None:
        """Read what is settled of a user; None for nothing, or for a damaged item."""
        answer = self._dynamodb.get_item(
            TableName=self._days, Key=item({"user_id": user_id, "activity_date": GOALS})
        )
        try:
            return SettledGoals.of(zlib.decompress(answer["Item"]["packed"]["B"]).decode())
        except (KeyError, TypeError, ValueError, zlib.error):
            return None

    def put(self, user_id: str, settled: SettledGoals) -> None:
        """Keep what is settled. is_passive keeps it out of the lake, as it does a day without activity."""
        made = item({"user_id": user_id, "activity_date": GOALS, "is_passive": True})
        packed = {"packed": {"B": zlib.compress(settled.text.encode())}}
        self._dynamodb.put_item(TableName=self._days, Item={**made, **packed})

    def days(self, user_id: str, first: date, last: date, *, is_strong: bool) -> MeasuredDays:
        """Return what each date between two, both included, adds to streaks; dates without are left out."""
        if first > last:
            return {}
        found = query_all(
            self._dynamodb,
            TableName=self._days,
            KeyConditionExpression="user_id = :user AND activity_date BETWEEN :first AND :last",
            ExpressionAttributeValues=item(
                {":user": user_id, ":first": first.isoformat(), ":last": last.isoformat()}
            ),
            ProjectionExpression="activity_date, measures",
            ConsistentRead=is_strong,
        )
        return {
            date.fromisoformat(day["activity_date"]): day["measures"]
            for day in map(plain, found)
            if day.get("measures")
        }
