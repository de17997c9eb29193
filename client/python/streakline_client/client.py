"""The client: one user's events, streak and points; one agent's questions."""

import time
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from typing import Any, Literal, overload

from streakline_client.calls import Calls, in_seconds, path_part, user_part
from streakline_client.profile import ShownProfile
from streakline_client.questions import QuestionCalls
from streakline_client.queue import forks
from streakline_client.shapes import (
    Achievements,
    Activity,
    Alias,
    Balance,
    BoardOfPeriod,
    BoardsOfBook,
    Entry,
    Event,
    Explanation,
    Friends,
    FriendsBoard,
    Leaderboard,
    League,
    OwnBoards,
    Pauses,
    Rank,
    RepairedStreak,
    RestDays,
    Rewards,
    TakenFreeze,
    TakingPart,
    Tie,
    Weekday,
    Zone,
)
from streakline_client.tracker import Queueing, Tracked, Tracker
from streakline_client.transport import Transport, over_http

SPAN_MAX = 366  # dates in one answer
Board = Literal["streaks", "points"]


class Streakline(QuestionCalls):
    """The service at a URL, for one caller: a person whose events these are, or an agent who asks."""

    def __init__(  # noqa: PLR0913 (settings, by name)
        self,
        url: str,
        token: str | Callable[[], str],
        *,
        user: str | None = None,
        queue: Queueing | None = None,
        transport: Transport | None = None,
        timeout: float | timedelta = 10.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """token: a bearer token, or a function that returns a fresh one.

        user: the token's `sub`; an agent who only asks questions needs none. queue: where and how the user's
        events wait. timeout: seconds of one attempt; a request for answers may stay open longer, by its
        `wait`. Raises ValueError or TypeError for arguments that cannot work.
        """
        send = transport or over_http(url)
        if not callable(token) and not (isinstance(token, str) and token.strip()):
            raise ValueError("token must be a bearer token, or a function that returns one")
        if user is not None and not (isinstance(user, str) and user.strip()):
            raise ValueError(f"user must be a text, the `sub` of the token, and not {user!r}")
        if queue is not None and not isinstance(queue, Queueing):
            raise TypeError(f"queue must be a Queueing, and not {queue!r}")
        if queue is not None and user is None:
            raise ValueError("user is missing: a queue is of one user's events")
        seconds = in_seconds(timeout, "timeout")
        calls = Calls(send, token, seconds, sleep)
        super().__init__(calls, seconds, sleep)
        self._tracker = Tracker(calls, user, queue or Queueing()) if user else None

    @overload
    def track(self, event_type: str, properties: Mapping[str, Any] | None = None) -> str: ...

    @overload
    def track(
        self, event_type: str, properties: Mapping[str, Any] | None = None, *, wait: float | timedelta
    ) -> Tracked: ...

    def track(
        self,
        event_type: str,
        properties: Mapping[str, Any] | None = None,
        *,
        wait: float | timedelta | None = None,
    ) -> str | Tracked:
        """Store an event that happens now, at this place; returns its key.

        The event is stored when this returns, and sent as soon as that is possible. wait: for so many seconds
        at most it waits until the service has applied the event, and returns what that did, too. Raises
        ValueError or TypeError for properties that are no JSON.
        """
        if wait is None:
            return self._tracking.track(event_type, properties)
        return self._tracking.track_and_wait(event_type, properties, in_seconds(wait, "wait"))

    def flush(self) -> int:
        """Try to send now; returns how many events still wait."""
        return self._tracking.flush()

    def waiting(self) -> list[Event]:
        """Return the events that wait, the oldest first."""
        return self._tracking.waiting()

    def close(self) -> None:
        """Stop sending. The waiting events stay in the queue's file."""
        if self._tracker:
            if self._tracker.is_inherited:
                self._tracker = self._tracker.anew(is_sending=False)
            self._tracker.close()

    def profile(self) -> ShownProfile:
        """Return the profile from the service, with the waiting events counted in."""
        if self._tracking.is_confirmed():
            return self._tracking.estimate()
        return self._tracking.corrected(lambda: self._of_user(""))

    def estimate(self) -> ShownProfile:
        """Return the newest profile with the waiting events counted in, without asking the service."""
        return self._tracking.estimate()

    def explain(self, day: date | str) -> Explanation:
        """Return why a date counts or not. day: a date, or its text (YYYY-MM-DD)."""
        shown: Explanation = self._of_user("/streak/explain", date=_date_text(day))
        return shown

    def activity(self, first: date | str, last: date | str) -> Activity:
        """Return the active dates of a span of at most 366, and the covered ones; the newest first.

        first, last: dates, or their texts (YYYY-MM-DD).
        """
        span = {"from": _date_text(first), "to": _date_text(last)}
        shown: Activity = self._of_user("/activity", **span, covered="true", limit=SPAN_MAX)
        return shown

    def achievements(self) -> Achievements:
        """Return the achievements: which the user has, since when, and how far the others are."""
        shown: Achievements = self._of_user("/achievements")
        return shown

    def balance(self) -> Balance:
        """Return the points, read strongly from the ledger."""
        shown: Balance = self._of_user("/balance")
        return shown

    def rewards(self) -> Rewards:
        """Return the rewards, and which of them this user can redeem."""
        shown: Rewards = self._of_user("/rewards")
        return shown

    def redeem(self, reward: str, *, price_points: int | None = None, key: str | None = None) -> Entry:
        """Redeem a reward. price_points: what the user was shown.

        If the answer is lost, call this again with the same arguments: the reward is redeemed once. The key
        for that is kept in the queue's file, for a day. key: your own in its place.
        """
        body: dict[str, Any] = {"reward": reward}
        if price_points is not None:
            body["price_points"] = price_points
        path = f"/v1/users/{self._user}/redemptions"
        entry: Entry = self._calls.command(path, body, key, answer_field="points")
        return entry

    def take_freeze(self, *, key: str | None = None) -> TakenFreeze:
        """Take a freeze, which covers a missed date: some a month are free, further ones cost points.

        If the answer is lost, call this again: one freeze is taken. key: as for `redeem`.
        """
        path = f"/v1/users/{self._user}/freezes"
        entry: TakenFreeze = self._calls.command(path, {}, key, answer_field="points")
        return entry

    def repair_streak(self, *, price_points: int | None = None, key: str | None = None) -> RepairedStreak:
        """Repair the run that has just broken, for points: it covers the dates of the profile's `repair`.

        price_points: what the user was shown. A second call gives the first answer. key: as for `redeem`.
        """
        path = f"/v1/users/{self._user}/streak/repair"
        body = {} if price_points is None else {"price_points": price_points}
        repaired: RepairedStreak = self._calls.command(path, body, key, answer_field="price_points")
        return repaired

    def pause(self, first: date | str, last: date | str) -> Pauses:
        """Pause the streak on a span of dates, today the earliest; returns all pauses.

        A paused date is no miss. first, last: dates, or their texts (YYYY-MM-DD).
        """
        span = {"first": _date_text(first), "last": _date_text(last)}
        pauses: Pauses = self._calls.call("POST", f"/v1/users/{self._user}/pauses", body=span)
        return pauses

    def set_rest_days(self, *weekdays: Weekday) -> RestDays:
        """Choose rest days, such as "saturday": weekdays on which a date without activity is no miss.

        The book says how many. None at all ends them. They count from a date that has begun nowhere yet, and
        stay for 28 days.
        """
        path, body = f"/v1/users/{self._user}/rest-days", {"rest_days": list(weekdays)}
        chosen: RestDays = self._calls.call("PUT", path, body=body)
        return chosen

    def set_timezone(self, timezone: str) -> Zone:
        """Set the zone of the user's dates, such as Europe/Berlin. Past dates stay as they are."""
        path, body = f"/v1/users/{self._user}/timezone", {"timezone": timezone}
        zone: Zone = self._calls.call("PUT", path, body=body)
        return zone

    def set_alias(self, alias: str | None) -> Alias:
        """Set the name under which the user is on the boards. None: a pseudonym."""
        path = f"/v1/users/{self._user}/alias"
        name: Alias = self._calls.call("PUT", path, body={"alias": alias})
        return name

    def leaderboard(
        self, board: Board, *, region: str | None = None, limit: int | None = None
    ) -> Leaderboard:
        """Return the first users of a board."""
        query = {"region": region, "limit": limit}
        shown: Leaderboard = self._calls.call("GET", f"/v1/leaderboards/{path_part(board)}", query)
        return shown

    def rank(self, board: Board, *, region: str | None = None) -> Rank:
        """Return this user's exact rank."""
        path = f"/v1/leaderboards/{path_part(board)}/users/{self._user}"
        shown: Rank = self._calls.call("GET", path, {"region": region})
        return shown

    def boards(self) -> BoardsOfBook:
        """Return the boards of the book, each with its periods: those that go on, and final results."""
        shown: BoardsOfBook = self._calls.call("GET", "/v1/boards")
        return shown

    def board(
        self,
        name: str,
        *,
        period: str | None = None,
        group: str | None = None,
        limit: int | None = None,
    ) -> BoardOfPeriod:
        """Return a board of the book: the first users, `me`, and the rows `around` this user.

        period: such as 2026-W48; None: that of the user's today. group: None: the user's own.
        """
        query = {"period": period, "group": group, "limit": limit}
        shown: BoardOfPeriod = self._calls.call("GET", f"/v1/boards/{path_part(name)}", query)
        return shown

    def set_hidden(self, *, hidden: bool) -> OwnBoards:
        """Leave all boards, or come back: within five minutes others no longer see this user, or do again."""
        path, body = f"/v1/users/{self._user}/boards", {"hidden": hidden}
        switched: OwnBoards = self._calls.call("PUT", path, body=body)
        return switched

    def league(self) -> League:
        """Return the user's division, the open league with its zones, and the last outcome.

        Raises Refused with the status 404 if there are no leagues this week.
        """
        shown: League = self._of_user("/league")
        return shown

    def set_taking_part(self, *, taking_part: bool) -> TakingPart:
        """Leave the leagues, or come back."""
        path, body = f"/v1/users/{self._user}/league", {"taking_part": taking_part}
        switched: TakingPart = self._calls.call("PUT", path, body=body)
        return switched

    def friends(self) -> Friends:
        """Return the friends, the streak that the user has with each, and requests."""
        shown: Friends = self._of_user("/friends")
        return shown

    def friends_board(self, board: str = "streaks") -> FriendsBoard:
        """Return the user among the friends. board: streaks, points, or a board of the book."""
        shown: FriendsBoard = self._of_user("/friends/board", board=board)
        return shown

    def befriend(self, friend: str) -> Tie:
        """Ask another user to be a friend, or answer such a request."""
        return self._tie("PUT", "friends", friend)

    def unfriend(self, friend: str) -> Tie:
        """End a pair, decline a request, or take one back."""
        return self._tie("DELETE", "friends", friend)

    def block(self, user: str, *, blocked: bool = True) -> Tie:
        """Block another user, who does not learn of it; blocked=False: let that user ask again."""
        return self._tie("PUT" if blocked else "DELETE", "blocked", user)

    def _tie(self, method: str, kind: str, other: str) -> Tie:
        tie: Tie = self._calls.call(method, f"/v1/users/{self._user}/{kind}/{user_part(other)}")
        return tie

    def _of_user(self, path: str, **query: Any) -> Any:
        return self._calls.call("GET", f"/v1/users/{self._user}{path}", query)

    @property
    def _user(self) -> str:
        return user_part(self._tracking.user)

    @property
    def _tracking(self) -> Tracker:
        if self._tracker is None:
            raise ValueError("this client has no user: Streakline(url, token, user=...)")
        if self._tracker.is_inherited:
            with forks.making:
                if self._tracker.is_inherited:  # no other thread has made one meanwhile
                    self._tracker = self._tracker.anew()
        return self._tracker


def _date_text(day: date | str) -> str:
    if isinstance(day, datetime):
        day = day.date()
    return day.strip() if isinstance(day, str) else day.isoformat()
