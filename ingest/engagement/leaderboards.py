"""Leaderboards with exact ranks. Users with the same score share a rank: 1, 2, 2, 4."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.engagement.account_items import profile_attributes
from adapters.engagement.cache_commands import BOARDS, GLOBAL
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.leaderboard_index import LeaderboardIndex
from ingest.engagement.profiles import Profiles
from ingest.web.caller import ApiError
from rules.days import OTHER_REGION, REGIONS, region_of
from rules.engagement.account_state import Profile


def check_board(board: str, region: str) -> None:
    """Raise 404 if there is no such board, 400 if there is no such region."""
    if board not in BOARDS:
        raise ApiError(404, "not_found", f"the boards are {', '.join(BOARDS)}")
    if region not in (GLOBAL, OTHER_REGION, *REGIONS):
        known = ", ".join((GLOBAL, *REGIONS, OTHER_REGION))
        raise ApiError(400, "invalid_parameter", f"region must be one of {known}")


def with_ranks(scores: list[tuple[str, int]]) -> list[dict[str, Any]]:
    """Return rank, user_id and score of (user, score) pairs, which come best first."""
    rows: list[dict[str, Any]] = []
    for place, (user, score) in enumerate(scores, 1):
        tied = bool(rows) and rows[-1]["score"] == score
        rows.append({"rank": rows[-1]["rank"] if tied else place, "user_id": user, "score": score})
    return rows


@dataclass(frozen=True, slots=True)
class Leaderboards:
    """Reads boards from Redis, and from the tables when Redis cannot answer."""

    profiles: Profiles
    boards: LeaderboardIndex
    cache: EngagementCache

    def top(self, board: str, region: str, limit: int, now: datetime) -> dict[str, Any]:
        """Return the best users, those with the same score by user id; raises 404 or 400 (check_board)."""
        check_board(board, region)
        rows = self.cache.top_list(region, board, limit)
        if rows is None:
            scores = self.cache.top(board, region, limit, now)
            rows = with_ranks(self.boards.top(board, region, limit, now) if scores is None else scores)
            self.cache.keep_top_list(region, board, limit, rows)
        return {"board": board, "region": region, "entries": rows}

    def rank(self, board: str, region: str, user_id: str, now: datetime) -> dict[str, Any]:
        """Return a user's exact rank, null if they are not on the board; raises 404 or 400 (check_board)."""
        check_board(board, region)
        profile = self.profiles.get(user_id)
        score = self._score(board, profile, now)
        rank = None
        if score and region in (GLOBAL, region_of(profile.zone)):
            above = self.cache.count_above(board, region, score, now)
            rank = 1 + (self.boards.count_above(board, region, score, now) if above is None else above)
        return {"board": board, "region": region, "user_id": user_id, "score": score, "rank": rank}

    def _score(self, board: str, profile: Profile, now: datetime) -> int:
        if board == "points":
            return profile.total_points
        attributes = profile_attributes(profile, 1)
        alive = attributes.get("lapses_at", 0) > int(now.timestamp())
        return int(attributes.get("current_streak", 0)) if alive else 0
