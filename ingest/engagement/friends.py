"""What users ask of each other as friends, and what a user sees of friends (docs/rules.md, rule 26)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import uuid4

from adapters.book_store import BookStore
from adapters.engagement.account_store import AccountStore
from adapters.engagement.active_dates import ActiveDatesReader
from adapters.engagement.friend_store import FriendStore
from ingest.engagement.leaderboards import check_listed
from ingest.web.api import ERASED_REASON
from ingest.web.caller import ApiError, invalid_field
from ingest.web.json_schema import (
    COUNT,
    FLAG,
    INSTANT,
    TEXT,
    closed_object,
    flag,
    list_of,
    one_of,
    open_object,
    text,
    text_or_null,
    whole,
)
from rules.days import EPOCH, parse_moment, stamp
from rules.engagement.account_state import Profile, date_at
from rules.engagement.board_settings import is_hidden
from rules.engagement.boards import best_first, with_ranks
from rules.engagement.friends import (
    Circle,
    Consent,
    FriendsRefused,
    Tie,
    TieState,
    befriend,
    block,
    part,
    unblock,
)
from rules.engagement.pair_streaks import (
    ActiveDates,
    Friend,
    Need,
    PairStreak,
    first_date,
    need_of,
    pair_streak,
    pair_today,
    run_reaches,
)
from rules.engagement.period_points import points_in
from rules.engagement.periods import Period, period_with
from rules.engagement.streak import shown_streak
from rules.user_ids import new_user_problem

NONE = "none"
STREAKS, POINTS = "streaks", "points"  # boards of friends that no book declares
TIE = closed_object(
    {
        "user_id": TEXT,
        "friend_id": TEXT,
        "state": one_of(
            [TieState.FRIEND, TieState.ASKED, TieState.REQUEST, TieState.BLOCKED, NONE],
            "what the user has with the other one: a friend, a request to or from, a block, or nothing",
        ),
        "since": text_or_null("the instant; null: there is nothing", format="date-time"),
    }
)
AGREED = closed_object(
    {
        "since?": text(
            "servers alone: when the pair began, not in the future; left out: now", format="date-time"
        )
    }
)
_OTHER = {"user_id": TEXT, "since": INSTANT}
FRIEND = open_object(
    {
        **_OTHER,
        "alias": text_or_null("the name on the boards that the friend chose"),
        "streak": COUNT
        | {"description": "dates on which both were active, in their current runs since then"},
        "at_risk": flag("one of both must still be active today, so that the streak goes on"),
        "today": text("the pair's: it lasts until the later midnight of both", format="date"),
        "active_today": flag("whether the user was active on that date"),
        "friend_active_today": FLAG,
    }
)
FRIENDS = open_object(
    {
        "user_id": TEXT,
        "friends_max": whole("the book's", 1),
        "friends": list_of(FRIEND, description="the oldest pair first"),
        "requests": list_of(
            closed_object({**_OTHER, "alias": text_or_null()}),
            description="of others: they wait for an answer",
        ),
        "asked": list_of(
            closed_object(_OTHER), description="whom the user has asked, and who may still answer"
        ),
        "blocked": list_of(closed_object(_OTHER), description="by the user"),
    }
)
FRIENDS_BOARD = open_object(
    {
        "board": text("streaks, points, or a board of the book"),
        "period?": text("of a board of the book, such as 2026-W48"),
        "entries": list_of(
            closed_object(
                {
                    "rank": whole("ties share one", 1),
                    "user_id": TEXT,
                    "alias": text_or_null(),
                    "score": COUNT,
                    "is_me": FLAG,
                }
            ),
            description="the user and the friends, the best first; without those who have left the boards",
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Friends:
    """Changes and shows users' ties."""

    store: FriendStore
    accounts: AccountStore
    dates: ActiveDatesReader
    books: BookStore
    is_erased: Callable[[str], bool]

    def befriend(
        self, user_id: str, friend_id: str, now: datetime, *, vouched: bool, since: str = ""
    ) -> dict[str, Any]:
        """Let a user consent to be another's friend; vouched: a server says that both have agreed.

        since: a stamp, if the server says when that was.
        Raises 409 friends_not_offered, friends_max, requests_max or blocked; 410 if a server names somebody
        who was erased.
        """
        most, is_erased = self._friends_max(now), self.is_erased(friend_id)
        if vouched and is_erased:
            raise ApiError(410, "erased", f"the user {ERASED_REASON}")
        consent = Consent(now, most, uuid4().hex, vouched, not is_erased, since)
        return self._change(user_id, friend_id, now, lambda mine, theirs: befriend(mine, theirs, consent))

    def part(self, user_id: str, friend_id: str, now: datetime) -> dict[str, Any]:
        """End a pair, decline a request, or take one back. What is not there is no error."""
        return self._change(user_id, friend_id, now, lambda mine, theirs: part(mine, theirs, now))

    def block(self, user_id: str, friend_id: str, now: datetime) -> dict[str, Any]:
        """Block another user. Raises 409 blocked_max."""
        return self._change(user_id, friend_id, now, lambda mine, theirs: block(mine, theirs, now))

    def unblock(self, user_id: str, friend_id: str, now: datetime) -> dict[str, Any]:
        """Let another user ask again."""
        return self._change(user_id, friend_id, now, lambda mine, theirs: unblock(mine, theirs, now))

    def view(self, user_id: str, now: datetime) -> dict[str, Any]:
        """Return a user's friends, each with the common streak, and requests. Raises friends_not_offered."""
        most, circle = self._friends_max(now), self.store.circle(user_id)
        friends, requests = (
            [tie for tie in circle.of(state, now) if not self.is_erased(tie.friend_id)]
            for state in (TieState.FRIEND, TieState.REQUEST)
        )
        others = [tie.friend_id for tie in (*friends, *requests)]
        profiles = self.accounts.readable_profiles([user_id, *others])
        friends, requests = (
            [tie for tie in ties if tie.friend_id in profiles] for ties in (friends, requests)
        )
        streaks = self._streaks(profiles, user_id, friends, now)
        return {
            "user_id": user_id,
            "friends_max": most,
            "friends": [
                _tie_view(tie) | {"alias": profiles[tie.friend_id].alias} | _streak_view(streak)
                for tie, streak in zip(friends, streaks, strict=True)
            ],
            "requests": [_tie_view(tie) | {"alias": profiles[tie.friend_id].alias} for tie in requests],
            "asked": list(map(_tie_view, circle.of(TieState.ASKED, now))),
            "blocked": list(map(_tie_view, circle.of(TieState.BLOCKED, now))),
        }

    def board(self, user_id: str, board: str, now: datetime) -> dict[str, Any]:
        """Return a user among the friends, by a score as profiles have it now.

        board: streaks, points, or a board of the book, in its period of the user's today. Raises 404 for any
        other, 409 friends_not_offered, and 409 boards_left for a user who has left the boards.
        """
        self._friends_max(now)
        friends = [tie.friend_id for tie in self.store.circle(user_id).of(TieState.FRIEND, now)]
        others = [user for user in friends if not self.is_erased(user)]
        profiles = self.accounts.readable_profiles([user_id, *others])
        check_listed(profiles[user_id])
        period = None
        if board not in (STREAKS, POINTS):
            period = self._period(board, profiles[user_id].local_date(now))

        def score(profile: Profile) -> int:
            if period:
                return points_in(profile.period_points, period)
            if board == POINTS:
                return profile.board_points
            return shown_streak(profile.streak, profile.cover, date_at(profile, now)).current

        listed = [
            profile
            for profile in profiles.values()
            if not is_hidden(profile.board_settings) and not profile.tz_review
        ]
        scores = best_first((each.user_id, score(each)) for each in listed)
        rows = [
            row | {"alias": profiles[row["user_id"]].alias, "is_me": row["user_id"] == user_id}
            for row in with_ranks(scores)
        ]
        return {"board": board, **({"period": period.name} if period else {}), "entries": rows}

    def _period(self, board: str, today: date) -> Period:
        if period := period_with(board, today, self.accounts.daily_terms()):
            return period
        raise ApiError(404, "not_found", f"no board {board!r:.80} counts today")

    def _streaks(
        self, profiles: dict[str, Profile], user_id: str, ties: Sequence[Tie], now: datetime
    ) -> list[PairStreak]:
        """Return the streak of each pair of a user."""
        me, needs = profiles[user_id], dict[str, Need]()
        pairs: list[tuple[str, date, date]] = []  # the friend, the first date that counts, the pair's today
        for tie in ties:
            friend, first = profiles[tie.friend_id], first_date(tie.since)
            today = pair_today(me, friend, now)
            run_first = max(run_reaches(me, today), run_reaches(friend, today))
            pairs.append((tie.friend_id, first, today))
            for profile in (me, friend):
                if need := need_of(profile, first, run_first, today):
                    before = needs.get(profile.user_id, need)
                    spans = min(before.first, need.first), max(before.last, need.last)
                    needs[profile.user_id] = Need(*spans)
        dates = self.dates.dates(profiles, needs, now)

        def side(user: str) -> Friend:
            return Friend(profiles[user], dates.get(user, ActiveDates()))

        return [pair_streak(side(user_id), side(friend), first, today) for friend, first, today in pairs]

    def _friends_max(self, now: datetime) -> int:
        most = self.books.books().at(now).book.friends_max
        if not most:
            raise ApiError(409, "friends_not_offered", "the book of rules has no friends")
        return most

    def _change(
        self,
        user_id: str,
        friend_id: str,
        now: datetime,
        decide: Callable[[Circle, Circle], tuple[Tie | None, Tie | None]],
    ) -> dict[str, Any]:
        """Change a user's tie to another one, and return it."""
        if self.is_erased(user_id):  # servers may reach users whom they are not told to be erased
            raise ApiError(410, "erased", f"the user {ERASED_REASON}")
        try:
            tie = self.store.change(user_id, friend_id, decide, now)
        except FriendsRefused as refused:
            raise ApiError(409, refused.code, str(refused)) from None
        is_there = tie is not None and tie.state is not TieState.ENDED
        return {
            "user_id": user_id,
            "friend_id": friend_id,
            "state": tie.state.value if tie and is_there else NONE,
            "since": tie.state_since if tie and is_there else None,
        }


def since_of_body(body: Mapping[str, Any], now: datetime, *, vouched: bool) -> str:
    """Return since when a pair is, as a server says it, as a stamp; "" if nobody does. Raises 403, 422."""
    if "since" not in body:
        return ""
    if not vouched:
        raise ApiError(403, "forbidden", "since is for servers, who say that both have agreed")
    try:
        since = parse_moment(body["since"]).utc
    except ValueError as error:
        raise invalid_field("since", str(error)) from None
    if not EPOCH <= since <= now:
        raise invalid_field("since", "is before 1970" if since < EPOCH else "is in the future")
    return stamp(since)


def check_other(user_id: str, friend_id: str) -> None:
    """Raise 400 for an id that can be no other user's."""
    problem = "is the user's own id" if friend_id == user_id else new_user_problem(friend_id)
    if problem:
        raise ApiError(400, "invalid_parameter", f"friend_id {problem}")


def _tie_view(tie: Tie) -> dict[str, Any]:
    return {"user_id": tie.friend_id, "since": tie.state_since}


def _streak_view(streak: PairStreak) -> dict[str, Any]:
    active_today, friend_active_today = streak.active_today
    return {
        "streak": streak.length,
        "at_risk": streak.is_at_risk,
        "today": streak.today.isoformat(),
        "active_today": active_today,
        "friend_active_today": friend_active_today,
    }
