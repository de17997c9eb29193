"""Boards of a period: lists, own ranks with the rows around, and results (docs/rules.md, rule 25)."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from adapters.engagement.boards import BoardManifest, BoardNames, BoardSnapshots
from adapters.engagement.ledger_store import LedgerStore
from adapters.engagement.period_boards import FinalResult, PeriodPages, StandingStore
from ingest.engagement.leaderboards import check_listed
from ingest.engagement.profiles import CountRead, Profiles, uncounted
from ingest.web.caller import ApiError, Caller, invalid_field
from ingest.web.json_schema import FLAG, TEXT, closed_object, flag, list_of, one_of, text, text_or_null, whole
from rules.book.board_rules import BoardPeriod, BoardRule
from rules.book.daily import DailyTerms
from rules.book.goal_rules import GOAL_NAME
from rules.days import stamp
from rules.engagement.account_state import Profile
from rules.engagement.board_settings import GROUPS_MAX, HIDDEN, VALUE, groups_of, is_hidden
from rules.engagement.boards import Standing, with_ranks
from rules.engagement.period_points import final_points, points_in
from rules.engagement.period_standings import Contest, State, state_of
from rules.engagement.periods import (
    NAMES,
    Period,
    begins_at,
    boards_in,
    counted_until,
    ends_at,
    final_at,
    first_period_from,
    period_named,
    period_with,
    unfinished_periods,
)
from rules.engagement.review import was_under_review

ENTRIES_READ_MAX = 10_000  # of a ledger, for a score of long ago
_STATE = one_of(State, "open: it goes on; provisional: late events may come; final: nothing changes it")
_PERIOD = {
    "period": text(f"{NAMES}"),
    "first": text("its first date", format="date"),
    "last": text("and its last one", format="date"),
    "state": _STATE,
    "ends_at": text("when it has ended everywhere on earth", format="date-time"),
    "final_at": text("from when on nothing changes it", format="date-time"),
}
_ROW = closed_object(
    {
        "rank": whole("", 1),
        "alias": text_or_null(
            "chosen by the user, or a stable pseudonym; null: erased, or has left the boards"
        ),
        "score": whole("", 1),
        "is_me": FLAG,
    }
)
_ME = {
    "score": whole("as it is now; of a final result as it was then", 0),
    "rank": {"type": ["integer", "null"], "description": "null: not on this board"},
}
_GROUP = closed_object({"name": TEXT, "value": TEXT})
BOARD_VIEW = closed_object(
    {
        "board": TEXT,
        **_PERIOD,
        "group?": _GROUP | {"description": "of whom the list is; left out: the board is undivided"},
        "as_of": text("when the scores were compared", format="date-time"),
        "is_old": flag("the standing is older than it is in ordinary running"),
        "users": whole("on the list", 0),
        "entries": list_of(_ROW),
        "me?": closed_object(_ME) | {"description": "of a caller who is a user, and has not left the boards"},
        "around?": list_of(_ROW) | {"description": "the rows around that user, with the user's own"},
    }
)
PLACE_VIEW = closed_object(
    {
        "board": TEXT,
        **_PERIOD,
        "group?": _GROUP,
        "as_of": text("", format="date-time"),
        "is_old": FLAG,
        "user_id": TEXT,
        "alias": text("under which others see the user"),
        **_ME,
        "around": list_of(_ROW),
    }
)
BOARDS_VIEW = closed_object(
    {
        "boards": list_of(
            closed_object(
                {
                    "board": TEXT,
                    "per": {"type": ["string", "null"], "enum": [*BoardPeriod, None]},
                    "group": text_or_null("the attribute that divides it"),
                    "next": {
                        **closed_object({name: _PERIOD[name] for name in ("period", "first", "last")}),
                        "type": ["object", "null"],
                        "description": "the first period that has begun nowhere; null: there is none",
                    },
                    "periods": list_of(closed_object(_PERIOD))
                    | {"description": "those that have begun, the latest first; final results a year back"},
                }
            )
        )
    }
)
SWITCH = closed_object(
    {"hidden": flag("true: on no list, in no count and in no group, from the next snapshot on")}
)
GROUPS = {
    "type": "object",
    "required": [],
    "properties": {},
    "maxProperties": GROUPS_MAX,
    "additionalProperties": text(pattern=VALUE, minLength=1, maxLength=64),
    "description": 'all groups of the user: {"class": "4b"}',
}
USER_BOARDS_VIEW = closed_object({"user_id": TEXT, "hidden": FLAG, "groups": {"type": "object"}})


@dataclass(frozen=True, slots=True)
class BoardQuery:
    """Which list is asked for."""

    board: str
    period: str | None = None  # its name; None: that of the user's today
    group: str | None = None  # of a divided board; None: the user's own


@dataclass(frozen=True, slots=True)
class PeriodBoards:
    """Reads the boards of the book.

    A standing is that of the newest snapshot; one of a period that is closed is the final result.
    """

    profiles: Profiles
    snapshots: BoardSnapshots
    standings: StandingStore
    pages: PeriodPages
    names: BoardNames
    ledger: LedgerStore
    daily_terms: Callable[[], DailyTerms]
    is_erased: Callable[[str], bool]

    def boards(self, now: datetime) -> dict[str, Any]:
        """Return the boards of the book, each with its periods that have begun."""
        terms = self.daily_terms()
        finals = self.standings.recent() if _has_boards(terms) else {}
        begun = sorted({*finals, *unfinished_periods(now, terms)}, key=lambda each: each.last, reverse=True)
        rules = {rule.name: rule for _, judging in terms for rule in judging.boards}
        boards = []
        for name, rule in sorted(rules.items()):
            own = [period for period in begun if _has_board(period, name, terms)]
            if own or rule in terms[-1][1].boards:
                coming = self._coming(rule, now)
                boards.append(
                    {
                        "board": name,
                        "per": rule.per,
                        "group": rule.group or None,
                        "next": _period_view(coming) if coming else None,
                        "periods": [self._view(period, now) for period in own],
                    }
                )
        return {"boards": boards}

    def _coming(self, rule: BoardRule, now: datetime) -> Period | None:
        """Return the first period of a board that has begun nowhere."""
        terms = self.daily_terms()
        day = (now + timedelta(hours=14)).date()
        period = first_period_from(rule, day)
        while period and (begins_at(period) <= now or not _has_board(period, rule.name, terms)):
            period = first_period_from(rule, period.first + timedelta(days=1)) if rule.per else None
            if period and (period.first - day).days > 400:
                return None
        return period

    def top(
        self,
        asked: BoardQuery,
        caller: Caller,
        limit: int,
        now: datetime,
        count_read: CountRead = uncounted,
    ) -> dict[str, Any]:
        """Return the first rows of a board; of a user who asks, also the rank and the rows around.

        Raises 404 for a board or a period that is not there, 400 for a name of a period that is none, 403 for
        another group than a user's own, 503 before there is any snapshot. count_read: is called before many
        entries of a ledger are read, and may raise 429.
        """
        viewer = None if caller.is_server else self.profiles.get(caller.user_id)
        contest = self._contest(asked, viewer, now)
        source = self._source(contest.period, now)
        pages = self.pages.of(contest, source)
        rows = pages.rows(0, limit)
        ranked = with_ranks([(row.user_id, row.score) for row in rows])
        view = self._head(asked.board, contest, source, now) | {
            "users": pages.users,
            "entries": self._rows_view(rows, [each["rank"] for each in ranked], caller.user_id, source, now),
        }
        if viewer is not None and viewer.version and not is_hidden(viewer.board_settings):
            me, around = self._place(viewer, contest, source, now, count_read)
            view |= {"me": me, "around": around}
        return view

    def place(
        self, asked: BoardQuery, user_id: str, now: datetime, count_read: CountRead = uncounted
    ) -> dict[str, Any]:
        """Return a user's rank with the rows around.

        Raises as `top`, and 409 for a user who has left the boards.
        """
        profile = self.profiles.get(user_id)
        check_listed(profile)
        contest = self._contest(asked, profile, now)
        source = self._source(contest.period, now)
        me, around = self._place(profile, contest, source, now, count_read)
        name = self.names.name_of(user_id, profile.alias)
        head = self._head(asked.board, contest, source, now)
        return head | {"user_id": user_id, "alias": name, **me, "around": around}

    def _contest(self, asked: BoardQuery, viewer: Profile | None, now: datetime) -> Contest:
        """Return the list that is asked for. viewer: the user who asks; None: a server does."""
        board, terms = asked.board, self.daily_terms()
        if not any(rule.name == board for _, judging in terms for rule in judging.boards):
            raise ApiError(404, "not_found", f"the book of rules declares no board {board!r:.80}")
        try:
            period = period_named(asked.period) if asked.period else self._newest_period(board, viewer, now)
        except ValueError as error:
            raise ApiError(400, "invalid_parameter", f"period {error}") from None
        rule = next((each for each in boards_in(period, terms) if each.name == board), None)
        if rule is None:
            raise ApiError(404, "not_found", f"{board} does not count in {period.name}")
        if begins_at(period) > now:
            raise ApiError(404, "not_found", f"{period.name} has begun nowhere yet")
        if rule.group:
            return Contest(period, rule.group, _group(rule.group, asked.group, viewer))
        if asked.group:
            raise ApiError(400, "invalid_parameter", f"{board} is not divided: leave group out")
        return Contest(period)

    def _newest_period(self, board: str, viewer: Profile | None, now: datetime) -> Period:
        """Return the period of the viewer's today, or of UTC's; else the newest that has begun."""
        terms = self.daily_terms()
        today = viewer.local_date(now) if viewer else now.date()
        if period := period_with(board, today, terms):
            return period
        begun = {*unfinished_periods(now, terms), *self.standings.recent()}
        own = [period for period in begun if _has_board(period, board, terms)]
        if not own:
            raise ApiError(404, "not_found", f"no period of {board} has begun yet")
        return max(own, key=lambda each: each.last)

    def _source(self, period: Period, now: datetime) -> BoardManifest | FinalResult:
        if final := self.standings.recent().get(period):
            return final
        manifest = self.snapshots.newest(now)
        if manifest is None or manifest.as_of < begins_at(period):
            text = "the boards are being counted: try again in a minute"
            raise ApiError(503, "unavailable", text, headers={"Retry-After": "60"})
        terms = self.daily_terms()
        if counted_until(period, terms) <= now:
            raise ApiError(404, "not_found", f"the result of {period.name} is not kept")
        return manifest

    def _place(
        self,
        profile: Profile,
        contest: Contest,
        source: BoardManifest | FinalResult,
        now: datetime,
        count_read: CountRead,
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return a user's score and rank, and the rows around."""
        pages, score = (
            self.pages.of(contest, source),
            self._score(profile, contest.period, source, count_read),
        )
        me = Standing(score, profile.user_id, profile.alias or "")
        is_on = score > 0
        if isinstance(source, FinalResult):
            is_on = is_on and pages.has(me)
        elif was_under_review(profile, now):
            is_on = False
        if not is_on:
            return {"score": score, "rank": None}, []
        rows = pages.around(me)
        ranks = [pages.rank(row.score) for row in rows]
        around = self._rows_view(rows, ranks, profile.user_id, source, now)
        return {"score": score, "rank": pages.rank(score)}, around

    def _score(
        self, profile: Profile, period: Period, source: BoardManifest | FinalResult, count_read: CountRead
    ) -> int:
        counted = points_in(profile.period_points, period)
        if counted or not isinstance(source, FinalResult):
            return counted
        since, until = stamp(begins_at(period)), stamp(source.final_at)
        if not profile.head or profile.head.created_at < since:
            return 0
        count_read()
        entries = self.ledger.between(profile.user_id, since, until, ENTRIES_READ_MAX)
        return final_points(entries, period, source.final_at)

    def _rows_view(
        self,
        rows: Sequence[Standing],
        ranks: Sequence[int],
        viewer: str,
        source: BoardManifest | FinalResult,
        now: datetime,
    ) -> list[dict[str, Any]]:
        """Return rows as others may see them: with a name in place of each user id.

        A final result shows who has left the boards since, or was erased, without a name; a snapshot does not
        show the erased.
        """
        is_final = isinstance(source, FinalResult)
        shown = [
            (row, rank)
            for row, rank in zip(rows, ranks, strict=True)
            if is_final or (row.user_id and not self.is_erased(row.user_id))
        ]
        names: Mapping[str, str | None] = {
            row.user_id: self.names.name_of(row.user_id, row.alias) for row, _ in shown if row.user_id
        }
        if is_final:
            named = {user for user in names if not self.is_erased(user)}
            names = self.names.listed_names_of(named, now)
        return [
            {
                "rank": rank,
                "alias": names.get(row.user_id) if row.user_id else None,
                "score": row.score,
                "is_me": bool(row.user_id) and row.user_id == viewer,
            }
            for row, rank in shown
        ]

    def _view(self, period: Period, now: datetime) -> dict[str, Any]:
        terms, final = self.daily_terms(), self.standings.recent().get(period)
        return {
            **_period_view(period),
            "state": state_of(period, terms, now, is_closed=final is not None).value,
            "ends_at": stamp(ends_at(period, terms)),
            "final_at": stamp(final.final_at if final else final_at(period, terms)),
        }

    def _head(
        self, board: str, contest: Contest, source: BoardManifest | FinalResult, now: datetime
    ) -> dict[str, Any]:
        if isinstance(source, FinalResult):
            as_of, is_old = source.final_at, False
        else:
            as_of, is_old = source.as_of, source.is_old(now)
        group = {"group": {"name": contest.group, "value": contest.value}} if contest.group else {}
        view = {"board": board, **self._view(contest.period, now), **group}
        return view | {"as_of": stamp(as_of), "is_old": is_old}


def _group(attribute: str, asked: str | None, viewer: Profile | None) -> str:
    """Return the group whose list is asked for. viewer: as above. Raises ApiError."""
    own = groups_of(viewer.board_settings).get(attribute) if viewer else None
    if viewer and asked and asked != own:
        raise ApiError(403, "forbidden", f"this token sees only its user's own {attribute}")
    if asked and re.fullmatch(VALUE, asked) is None:
        raise ApiError(400, "invalid_parameter", "group is no value of an attribute")
    if value := asked or own:
        return value
    if viewer:
        raise ApiError(404, "not_found", f"the user is in no {attribute}")
    raise ApiError(400, "invalid_parameter", f"group is missing: which {attribute}?")


def _has_boards(terms: DailyTerms) -> bool:
    return any(rules.boards for _, rules in terms)


def _has_board(period: Period, name: str, terms: DailyTerms) -> bool:
    return any(rule.name == name for rule in boards_in(period, terms))


def _period_view(period: Period) -> dict[str, Any]:
    return {"period": period.name, "first": period.first.isoformat(), "last": period.last.isoformat()}


def checked_groups(groups: Mapping[str, str]) -> Mapping[str, str]:
    """Return groups that may be set; raises 422."""
    for name in groups:
        if re.fullmatch(GOAL_NAME, name) is None:
            raise invalid_field(name, f"is no name of an attribute, which is like class: {GOAL_NAME}")
    if HIDDEN in groups:
        raise invalid_field(HIDDEN, "is no group: the user's own switch is PUT /v1/users/{user_id}/boards")
    return groups


def user_boards_view(profile: Profile) -> dict[str, Any]:
    """Return how a user is on the boards."""
    settings = profile.board_settings
    return {"user_id": profile.user_id, "hidden": is_hidden(settings), "groups": groups_of(settings)}
