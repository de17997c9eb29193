"""One user's streak and points."""

import uuid
from datetime import date, datetime
from typing import Any, Literal

from streakline_client.calls import Calls, path_part
from streakline_client.shapes import (
    Activity,
    Balance,
    Entry,
    Explanation,
    Leaderboard,
    Profile,
    Rank,
    Rewards,
)

SPAN_MAX = 366  # dates in one answer
Board = Literal["streaks", "points"]


class UserCalls:
    """The calls about a user and the boards."""

    def __init__(self, calls: Calls, user: str) -> None:
        self._calls, self._user = calls, path_part(user)

    def profile(self) -> Profile:
        """Return the profile as the service has it."""
        shown: Profile = self._get("")
        return shown

    def explain(self, day: date | str) -> Explanation:
        """Return why a date counts or not."""
        shown: Explanation = self._get("/streak/explain", date=_date_text(day))
        return shown

    def activity(self, first: date | str, last: date | str) -> Activity:
        """Return the active dates of a span of at most 366, and the covered ones; the newest first."""
        span = {"from": _date_text(first), "to": _date_text(last)}
        shown: Activity = self._get("/activity", **span, covered="true", limit=SPAN_MAX)
        return shown

    def balance(self) -> Balance:
        """Return the points, read strongly from the ledger."""
        shown: Balance = self._get("/balance")
        return shown

    def rewards(self) -> Rewards:
        """Return the rewards, and which of them this user can redeem."""
        shown: Rewards = self._get("/rewards")
        return shown

    def redeem(self, reward: str, *, price_points: int | None = None, key: str | None = None) -> Entry:
        """Redeem a reward. price_points: what the user was shown.

        key: keep it until this returns, and a lost answer costs nobody twice.
        """
        body: dict[str, Any] = {"reward": reward, "idempotency_key": key or str(uuid.uuid4())}
        if price_points is not None:
            body["price_points"] = price_points
        entry: Entry = self._calls.call("POST", f"/v1/users/{self._user}/redemptions", body=body)
        return entry

    def leaderboard(
        self, board: Board, *, region: str | None = None, limit: int | None = None
    ) -> Leaderboard:
        """Return the first users of a board. region: None for the global board."""
        query = {"region": region, "limit": limit}
        shown: Leaderboard = self._calls.call("GET", f"/v1/leaderboards/{path_part(board)}", query)
        return shown

    def rank(self, board: Board, *, region: str | None = None) -> Rank:
        """Return this user's exact rank."""
        path = f"/v1/leaderboards/{path_part(board)}/users/{self._user}"
        shown: Rank = self._calls.call("GET", path, {"region": region})
        return shown

    def _get(self, path: str, **query: Any) -> Any:
        return self._calls.call("GET", f"/v1/users/{self._user}{path}", query)


def _date_text(day: date | str) -> str:
    """Return a date as the API writes it; of an instant its date."""
    if isinstance(day, datetime):
        day = day.date()
    return day.strip() if isinstance(day, str) else day.isoformat()
