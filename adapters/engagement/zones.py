"""The time zones that users have set, read without all else that their profiles say."""

from collections.abc import Iterable
from typing import Any

from adapters.platform.items import plain
from adapters.platform.tables import get_all


class ZoneStore:
    """The zones in the table of profiles (UserStreaks)."""

    def __init__(self, dynamodb: Any, profiles: str) -> None:
        self._dynamodb, self._profiles = dynamodb, profiles

    def chosen(self, user_ids: Iterable[str]) -> dict[str, str | None]:
        """Return each user's zone; None: the user has set none, or is not known. Raises Unprocessed."""
        users = sorted(set(user_ids))
        keys = [{"user_id": user} for user in users]
        stored = map(plain, get_all(self._dynamodb, self._profiles, keys, "user_id, timezone_chosen"))
        found = {each["user_id"]: each.get("timezone_chosen") for each in stored}
        return {user: found.get(user) for user in users}
