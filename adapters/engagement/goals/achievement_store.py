"""What readers have kept of users' achievements: an item of DailyActivity each, as that of streaks is."""

import zlib
from typing import Any

from adapters.engagement.account_items import ACHIEVEMENTS
from adapters.platform.items import item
from rules.engagement.achievements import KeptAchievements


class AchievementStore:
    """The table DailyActivity, for achievements."""

    def __init__(self, dynamodb: Any, days: str) -> None:
        self._dynamodb, self._days = dynamodb, days

    def get(self, user_id: str) -> KeptAchievements:
        """Read what is kept of a user, strongly consistent; nothing for nothing, or for a damaged item."""
        answer = self._dynamodb.get_item(
            TableName=self._days,
            Key=item({"user_id": user_id, "activity_date": ACHIEVEMENTS}),
            ConsistentRead=True,
        )
        try:
            return KeptAchievements.of(zlib.decompress(answer["Item"]["packed"]["B"]).decode())
        except (KeyError, TypeError, ValueError, zlib.error):
            return KeptAchievements()

    def put(self, user_id: str, kept: KeptAchievements) -> None:
        """Keep it."""
        self._dynamodb.put_item(**self.put_of(user_id, kept)["Put"])

    def put_of(self, user_id: str, kept: KeptAchievements) -> dict[str, Any]:
        """Return what keeps it. is_passive keeps it out of the lake, as it does a day without activity."""
        made = item({"user_id": user_id, "activity_date": ACHIEVEMENTS, "is_passive": True})
        packed = {"packed": {"B": zlib.compress(kept.text.encode())}}
        return {"Put": {"TableName": self._days, "Item": {**made, **packed}}}
