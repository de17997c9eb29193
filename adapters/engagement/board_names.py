"""Under which name a user is on the boards: the alias that they chose, or a pseudonym. Never the user id."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from adapters.platform.items import plain
from adapters.platform.keyed_hash import KeyedHash
from adapters.platform.tables import get_all
from rules.days import EPOCH

PSEUDONYM_DIGITS = 10
KEPT = timedelta(minutes=1)


class BoardNames:
    """Names of users. A process keeps those that it has read for a minute."""

    def __init__(self, dynamodb: Any, profiles: str, hashed: KeyedHash) -> None:
        self._dynamodb, self._profiles, self._hashed = dynamodb, profiles, hashed
        self._since, self._aliases = EPOCH, dict[str, str]()

    def of(self, user_ids: Iterable[str], now: datetime) -> dict[str, str]:
        """Return the name of each user: `player-1f0c2d3e4b` for one without an alias; it follows the key."""
        users = set(user_ids)
        if now - self._since > KEPT:
            self._since, self._aliases = now, {}
        new = [{"user_id": each} for each in sorted(users - self._aliases.keys())]
        found = {each["user_id"]: each.get("alias", "") for each in map(plain, self._read(new))}
        self._aliases |= {each["user_id"]: found.get(each["user_id"], "") for each in new}
        return {user: self.shown(user, self._aliases[user]) for user in users}

    def shown(self, user_id: str, alias: str | None) -> str:
        """Return the alias, or what stands for a user without one: only who has the key can tell for whom."""
        return alias or f"player-{self._hashed.of(f'board:{user_id}', PSEUDONYM_DIGITS)}"

    def forget(self, user_id: str) -> None:
        """Read a user's alias anew."""
        self._aliases.pop(user_id, None)

    def _read(self, keys: list[dict[str, str]]) -> Iterable[Any]:
        return get_all(self._dynamodb, self._profiles, keys, "user_id, alias") if keys else ()
