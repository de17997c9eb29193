"""Leaderboards with exact ranks. Users with the same score share a rank: 1, 2, 2, 4."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from adapters.engagement.account_items import profile_attributes
from adapters.engagement.boards import BoardNames, BoardSnapshots, LeaderboardIndex
from adapters.engagement.engagement_cache import EngagementCache
from ingest.engagement.profiles import Profiles
from ingest.web.caller import ApiError
from ingest.web.json_schema import FLAG, TEXT, closed_object, flag, list_of, text, text_or_null, whole
from rules.days import EPOCH, region_of, stamp, unstamp
from rules.engagement.account_state import Profile
from rules.engagement.boards import ALL_REGIONS, BOARDS, GLOBAL, LISTED_MAX, with_ranks

# With Redis, lists are made anew each minute; without it, a snapshot each five (of up to 300,000 users).
LIST_AGE_MAX = timedelta(minutes=1)
OLD_LIST, OLD_SNAPSHOT = timedelta(minutes=2), timedelta(minutes=10)
ALIAS = closed_object(
    {
        "alias": text_or_null(
            "3 to 24 letters, digits, spaces, dots, dashes, but not two words and a number, as pseudonyms"
            " are; null: a pseudonym. It is no proof: two users may have the same",
            pattern=r"^(?!([A-Za-z]+[ _.-]+){2}[0-9]+$)[A-Za-z0-9][A-Za-z0-9 _.-]{1,22}[A-Za-z0-9]$",
        )
    }
)
ALIAS_VIEW = closed_object(
    {"user_id": TEXT, "alias": text_or_null(), "shown_as": text("the alias, or the pseudonym")}
)
_BOARD = {"board": TEXT, "region": TEXT}
_AGE = {
    "as_of": text("when the scores were compared", format="date-time"),
    "is_old": flag("the board is older than it is in ordinary running: its cache is away"),
}
_BOARD_ROW = closed_object(
    {
        "rank": whole("", 1),
        "alias": text("chosen by the user, or a stable pseudonym: Swift Heron 42"),
        "score": whole("", 1),
        "is_me": FLAG,
    }
)
TOP_LIST = closed_object({**_BOARD, **_AGE, "entries": list_of(_BOARD_ROW)})
RANK = closed_object(
    {
        **_BOARD,
        "user_id": TEXT,
        "alias": text("under which others see the user"),
        "score": whole("as it is now", 0),
        "rank": {"type": ["integer", "null"], "description": "null: not on this board"},
        **_AGE,
    }
)


def check_board(board: str, region: str) -> None:
    """Raise 404 if there is no such board, 400 if there is no such region."""
    if board not in BOARDS:
        raise ApiError(404, "not_found", f"the boards are {', '.join(BOARDS)}")
    if region not in ALL_REGIONS:
        raise ApiError(400, "invalid_parameter", f"region must be one of {', '.join(ALL_REGIONS)}")


def board_view(
    board: dict[str, Any],
    names: BoardNames,
    viewer: str,
    is_erased: Callable[[str], bool],
    now: datetime,
) -> dict[str, Any]:
    """Return a board as others may see it: with a name instead of each user id, and without the erased."""
    entries = [each for each in board["entries"] if not is_erased(each["user_id"])]
    aliases = names.of((each["user_id"] for each in entries if "alias" not in each), now)
    rows = [
        {
            "rank": each["rank"],
            "alias": aliases.get(each["user_id"]) or names.shown(each["user_id"], each.get("alias")),
            "score": each["score"],
            "is_me": each["user_id"] == viewer,
        }
        for each in entries
    ]
    return {**board, "entries": rows}


@dataclass(frozen=True, slots=True)
class Leaderboards:
    """Reads boards from Redis; where it cannot answer, lists of streaks from the index, all else from the
    newest snapshot.

    `as_of` in an answer is the instant whose scores it compares. `is_old`: longer ago than ordinarily.
    While Redis is away, an old board without anybody is none: nobody knows who has come since.
    """

    profiles: Profiles
    snapshots: BoardSnapshots
    index: LeaderboardIndex
    cache: EngagementCache
    kept: dict[str, tuple[datetime, list[tuple[str, int]]]] = field(default_factory=dict)

    def top(self, board: str, region: str, limit: int, now: datetime) -> dict[str, Any]:
        """Return the best users, those with the same score by user id. It has user ids: see board_view.

        Raises 404 or 400 (check_board), and 503 for points before there is any snapshot.
        """
        check_board(board, region)
        made = self.cache.top_list(region, board)
        if made is None:
            as_of, scores, aliases = self._top(board, region, now)
            rows = [row | aliases.get(row["user_id"], {}) for row in with_ranks(scores)]
            made = {"as_of": stamp(as_of), "entries": rows}
            self.cache.keep_top_list(region, board, made)
        is_old = self._is_old(unstamp(made["as_of"]), now)
        if is_old and self.cache.is_configured and not made["entries"]:
            raise _not_ready()
        shown = {"as_of": made["as_of"], "is_old": is_old, "entries": made["entries"][:limit]}
        return {"board": board, "region": region, **shown}

    def _is_old(self, as_of: datetime, now: datetime) -> bool:
        return now - as_of > (OLD_LIST if self.cache.is_configured else OLD_SNAPSHOT)

    def _top(
        self, board: str, region: str, now: datetime
    ) -> tuple[datetime, list[tuple[str, int]], dict[str, dict[str, str]]]:
        """Return as_of, (user, score) pairs, and the users' aliases as far as they are known."""
        if board == "streaks":
            return *self._streaks(region, now), {}
        scores = self.cache.ranks.top(board, region, LISTED_MAX, now)
        if scores is not None:
            return now, scores, {}
        snapshot = self.snapshots.top(region, now)
        if snapshot is not None:
            as_of, rows = snapshot
            aliases = {each.user_id: {"alias": each.alias} for each in rows}
            return as_of, [(each.user_id, each.score) for each in rows], aliases
        raise _not_ready()

    def _streaks(self, region: str, now: datetime) -> tuple[datetime, list[tuple[str, int]]]:
        """Return a list of streaks, and when it was read. While no Redis keeps it, the process does."""
        read_at, scores = self.kept.get(region, (EPOCH, []))
        if not read_at <= now < read_at + LIST_AGE_MAX or self.cache.ranks.can_tell():
            read_at, scores = self.kept[region] = now, self.index.top(region, now)
        return read_at, scores

    def rank(self, board: str, region: str, user_id: str, now: datetime) -> dict[str, Any]:
        """Return a user's exact rank, null if they are not on the board.

        The user's score is that of now. Raises 404 or 400 (check_board), and 503 before there is any
        snapshot; a rank among streaks is counted in the index then, as long as that is small.
        """
        check_board(board, region)
        profile = self.profiles.get(user_id)
        score = self._score(board, profile, now)
        as_of, rank = now, None
        if score and region in (GLOBAL, region_of(profile.zone)):
            as_of, above = self._count_above(board, region, score, now)
            rank = 1 + above
        view = {
            "user_id": user_id,
            "alias": profile.alias,
            "score": score,
            "rank": rank,
            "as_of": stamp(as_of),
            "is_old": self._is_old(as_of, now),
        }
        return {"board": board, "region": region, **view}

    def _count_above(self, board: str, region: str, score: int, now: datetime) -> tuple[datetime, int]:
        above = self.cache.ranks.count_above(board, region, score, now)
        if above is not None:
            return now, above
        snapshot = self.snapshots.count_above(board, region, score, now)
        if snapshot is None:
            counted = self.index.count_above(region, score, now) if board == "streaks" else None
            if counted is None:
                raise _not_ready()
            return now, counted
        if self.cache.is_configured and self._is_old(snapshot[0], now):
            newest = self.snapshots.newest(now)
            if newest is None or f"{board}#{region}" not in newest.index:
                raise _not_ready()
        return snapshot

    def _score(self, board: str, profile: Profile, now: datetime) -> int:
        if board == "points":
            return profile.total_points
        attributes = profile_attributes(profile)
        alive = attributes.get("lapses_at", 0) > int(now.timestamp())
        return int(attributes.get("current_streak", 0)) if alive else 0


def _not_ready() -> ApiError:
    """Return the refusal of a new stack's first minutes, or of one whose snapshots failed for a day."""
    text = "the leaderboards are being counted: try again in a minute"
    return ApiError(503, "unavailable", text, headers={"Retry-After": "60"})
