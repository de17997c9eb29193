"""Leaderboards with exact ranks. Users with the same score share a rank: 1, 2, 2, 4."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from adapters.engagement.account_items import profile_attributes
from adapters.engagement.boards import BoardNames, BoardSnapshots, LeaderboardIndex
from adapters.engagement.engagement_cache import EngagementCache
from ingest.engagement.profiles import Profiles
from ingest.web.caller import ApiError, invalid_field
from ingest.web.json_schema import FLAG, TEXT, closed_object, flag, list_of, text, text_or_null, whole
from rules.days import EPOCH, region_of, stamp
from rules.engagement.account_state import Profile
from rules.engagement.aliases import INNER, LENGTH_MAX, alias_of
from rules.engagement.board_settings import is_hidden
from rules.engagement.boards import ALL_REGIONS, BOARDS, GLOBAL, with_ranks

BACK = 'PUT /v1/users/{user_id}/boards with {"hidden": false} brings the user back within five minutes'
LIST_AGE_MAX = timedelta(minutes=1)
ALIAS = closed_object(
    {
        "alias": text_or_null(
            f"1 to {LENGTH_MAX} letters, their marks and digits of one script (Latin ones also beside"
            f" Chinese, Japanese and Korean), between them {INNER.strip()} and blanks, two of these in a row"
            " at most; ' may also begin it, and ' or . end it. One alone is a Chinese character or a Korean"
            " syllable. No name of the service or of its staff, not two words and a number, as pseudonyms"
            " are; null: a pseudonym. It is no proof: two users may have the same"
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


def checked_alias(alias: str | None) -> str | None:
    """Return an alias in its one spelling, None for a pseudonym; raises 422."""
    try:
        return None if alias is None else alias_of(alias)
    except ValueError as error:
        raise invalid_field("alias", str(error)) from None


def check_listed(profile: Profile) -> None:
    """Raise 409 for a user who has left the boards."""
    if is_hidden(profile.board_settings):
        raise ApiError(409, "boards_left", f"the user has left the boards: {BACK}")


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
    entries = [entry for entry in board["entries"] if not is_erased(entry["user_id"])]
    aliases = names.names_of((entry["user_id"] for entry in entries if "alias" not in entry), now)
    rows = [
        {
            "rank": entry["rank"],
            "alias": aliases.get(entry["user_id"]) or names.name_of(entry["user_id"], entry.get("alias")),
            "score": entry["score"],
            "is_me": entry["user_id"] == viewer,
        }
        for entry in entries
    ]
    return {**board, "entries": rows}


@dataclass(frozen=True, slots=True)
class Leaderboards:
    """Reads boards: lists of streaks from the index, all else from the newest snapshot.

    `as_of` in an answer is the instant whose scores it compares. `is_old`: that is longer ago than usual.
    """

    profiles: Profiles
    snapshots: BoardSnapshots
    index: LeaderboardIndex
    cache: EngagementCache
    lists: dict[str, tuple[datetime, dict[str, Any]]] = field(default_factory=dict)  # of streaks, by region

    def top(self, board: str, region: str, limit: int, now: datetime) -> dict[str, Any]:
        """Return the best users, those with the same score by user id. It has user ids: see board_view.

        Raises 404 or 400 (check_board), and 503 for points before there is any snapshot.
        """
        check_board(board, region)
        top_list = self._streaks(region, now) if board == "streaks" else self._points(region, now)
        return {
            "board": board,
            "region": region,
            "as_of": top_list["as_of"],
            "is_old": top_list.get("is_old", False),
            "entries": top_list["entries"][:limit],
        }

    def _points(self, region: str, now: datetime) -> dict[str, Any]:
        manifest = self.snapshots.newest(now)
        rows = self.snapshots.top(manifest, region) if manifest else None
        if manifest is None or rows is None:
            raise _not_ready()
        aliases = {row.user_id: row.alias for row in rows}
        ranked = with_ranks([(row.user_id, row.score) for row in rows])
        entries = [{**entry, "alias": aliases[entry["user_id"]]} for entry in ranked]
        return {"as_of": stamp(manifest.as_of), "is_old": manifest.is_old(now), "entries": entries}

    def _streaks(self, region: str, now: datetime) -> dict[str, Any]:
        """Return a list of streaks that is at most a minute old: Redis keeps it, and so does the process."""
        if (cached := self.cache.top_list(region)) is not None:
            return cached
        read_at, top_list = self.lists.get(region, (EPOCH, {}))
        if not read_at <= now < read_at + LIST_AGE_MAX:
            top_list = {"as_of": stamp(now), "entries": with_ranks(self.index.top(region, now))}
            self.lists[region] = now, top_list
            self.cache.keep_top_list(region, top_list)
        return top_list

    def rank(self, board: str, region: str, user_id: str, now: datetime) -> dict[str, Any]:
        """Return a user's exact rank, null if they are not on the board.

        The user's score is that of now. Raises 404 or 400 (check_board), and 503 before there is any
        snapshot; a rank among streaks is counted in the index then, as long as that is small. 409 for a user
        who has left the boards.
        """
        check_board(board, region)
        profile = self.profiles.get(user_id)
        check_listed(profile)
        score = self._score(board, profile, now)
        as_of, rank, is_old = now, None, False  # so it stays for who is not on the board
        if score and region in (GLOBAL, region_of(profile.zone)):
            manifest, users_above = self.snapshots.newest(now), None
            if manifest:
                as_of, is_old = manifest.as_of, manifest.is_old(now)
                users_above = self.snapshots.count_above(manifest, board, region, score)
            elif board == "streaks":
                users_above = self.index.count_above(region, score, now)
            if users_above is None:
                raise _not_ready()
            rank = 1 + users_above
        return {
            "board": board,
            "region": region,
            "user_id": user_id,
            "alias": profile.alias,
            "score": score,
            "rank": rank,
            "as_of": stamp(as_of),
            "is_old": is_old,
        }

    def _score(self, board: str, profile: Profile, now: datetime) -> int:
        if board == "points":
            return profile.board_points
        attributes = profile_attributes(profile)
        is_alive = attributes.get("lapses_at", 0) > int(now.timestamp())
        return int(attributes.get("current_streak", 0)) if is_alive else 0


def _not_ready() -> ApiError:
    """Return the refusal of a new stack's first minutes, or of one whose snapshots failed for a day."""
    text = "the leaderboards are being counted: try again in a minute"
    return ApiError(503, "unavailable", text, headers={"Retry-After": "60"})
