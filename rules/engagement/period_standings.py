"""The standings of periods: who has how many points, by contest (docs/rules.md, rule 25).

A *contest* is one list: all users of a period, or those of one group. Its rows are packed best first, so many
to a page, and the first page names the first row of each. So a rank, and the rows around somebody, need two
pages, however many users there are.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from rules.book.daily import DailyTerms
from rules.engagement.account_state import Profile
from rules.engagement.board_settings import is_hidden, settings_at
from rules.engagement.boards import Standing
from rules.engagement.period_points import points_in
from rules.engagement.periods import Period, boards_in, counted_until, ends_at, final_at, periods_between
from rules.engagement.review import was_under_review

ROWS_IN_PAGE = 250
AROUND = 3  # so many rows above somebody are shown, and as many below
# A period is closed so long after it is final. By then what was written before is in the profiles.
CLOSING_DELAY = timedelta(hours=1)
FINAL_KEPT = timedelta(days=400)  # a final result
ENDED_KNOWN = timedelta(days=40)  # whoever looks for ended periods looks so far back
AFTER_ALL = "\U0010ffff"  # sorts after each user id
Place = tuple[int, str]  # points below 0, and the user id: rows sort by it
Row = tuple[int, str, str]  # a place, and the alias


class State(StrEnum):
    """How sure a standing is."""

    OPEN = "open"  # its dates are not over everywhere
    PROVISIONAL = "provisional"  # events of its dates may still come
    FINAL = "final"  # nothing changes it


def state_of(period: Period, terms: DailyTerms, now: datetime, *, is_closed: bool) -> State:
    """Return the state of a period. is_closed: whether its final result is stored."""
    if is_closed:
        return State.FINAL
    return State.OPEN if now < ends_at(period, terms) else State.PROVISIONAL


@dataclass(frozen=True, slots=True, order=True)
class Contest:
    """One list."""

    period: Period
    group: str = ""  # the attribute that divides the board; "": none
    value: str = ""  # the group's, such as 4b

    @property
    def key(self) -> str:
        """The contest as it is stored: `2026-W48`, or `2026-W48 class=4b`."""
        return f"{self.period.name} {self.group}={self.value}" if self.group else self.period.name


def _ended_between(now: datetime, terms: DailyTerms) -> list[Period]:
    return periods_between((now - ENDED_KNOWN).date(), now.date(), terms)


def periods_waiting(now: datetime, terms: DailyTerms) -> list[Period]:
    """Return the periods that are final and that profiles still count, the earliest first."""
    periods = _ended_between(now, terms)
    return [period for period in periods if final_at(period, terms) <= now < counted_until(period, terms)]


def periods_to_close(now: datetime, terms: DailyTerms) -> list[Period]:
    """Return the periods whose final result may be made, the earliest first."""
    waiting = periods_waiting(now, terms)
    return [period for period in waiting if final_at(period, terms) + CLOSING_DELAY <= now]


def missed_periods(now: datetime, terms: DailyTerms) -> list[Period]:
    """Return the periods whose final result can no longer be made. Some may have theirs."""
    return [period for period in _ended_between(now, terms) if counted_until(period, terms) <= now]


class PeriodStandings:
    """The rows of all contests of some periods, counted in one pass over the users, in any order.

    instants: by period, the instant as of which groups, reviews and who has left are taken.
    """

    def __init__(self, instants: dict[Period, datetime], terms: DailyTerms) -> None:
        self.instants = instants
        self._undivided = {period: list[Row]() for period in instants}
        self._divided: dict[Contest, list[Row]] = defaultdict(list)
        # Period, instant, attributes that divide its boards, and the rows of an undivided one; None: none
        self._lists: list[tuple[Period, datetime, list[str], list[Row] | None]] = []
        for period, at in instants.items():
            groups = {rule.group for rule in boards_in(period, terms)}
            undivided = self._undivided[period] if "" in groups else None
            self._lists.append((period, at, sorted(groups - {""}), undivided))

    def add(self, profile: Profile) -> None:
        """Count a user, once. Who has no points, is under review or has left the boards is in no contest."""
        settings = profile.board_settings
        for period, at, attributes, undivided in self._lists:
            points = points_in(profile.period_points, period)
            if points <= 0 or was_under_review(profile, at) or (settings and is_hidden(settings, at)):
                continue
            row = (-points, profile.user_id, profile.alias or "")
            if undivided is not None:
                undivided.append(row)
            set_before = settings_at(settings, at) if attributes and settings else {}
            for group in attributes:
                if value := set_before.get(group):
                    self._divided[Contest(period, group, value)].append(row)

    def contests(self, period: Period) -> Iterator[tuple[Contest, list[Standing]]]:
        """Yield each contest of a period that has a user, with its rows, best first, ties by user id."""
        found = {Contest(period): self._undivided[period]}
        found |= {contest: rows for contest, rows in self._divided.items() if contest.period == period}
        for contest, rows in sorted(found.items()):
            if rows:
                yield contest, [Standing(-score, user, alias) for score, user, alias in sorted(rows)]


def place_of(row: Standing) -> Place:
    """Return by what a row sorts."""
    return -row.score, row.user_id


def pages_of(rows: Sequence[Standing]) -> list[Sequence[Standing]]:
    """Return rows page by page."""
    return [rows[begin : begin + ROWS_IN_PAGE] for begin in range(0, len(rows), ROWS_IN_PAGE)]


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of a stored standing."""

    firsts: Sequence[Place]  # of each page
    users: int  # how many rows there are
    read: Callable[[int], Sequence[Standing]]  # returns the rows of a page

    def rank(self, score: int) -> int:
        """Return the rank of a score: 1 and the number of users with a higher one."""
        page = sum(-place[0] > score for place in self.firsts) - 1
        if page < 0:
            return 1
        return 1 + page * ROWS_IN_PAGE + sum(row.score > score for row in self.read(page))

    def position(self, place: Place) -> int:
        """Return how many rows are before a place."""
        page = self._page_of(place)
        rows = self.read(page) if self.firsts else ()
        for number, row in enumerate(rows):
            # An erased user's row has no name by which it would sort.
            if -row.score > place[0] or (row.user_id and place_of(row) >= place):
                return page * ROWS_IN_PAGE + number
        return page * ROWS_IN_PAGE + len(rows)

    def _page_of(self, place: Place) -> int:
        return max(0, bisect_right(list(self.firsts), place) - 1)

    def rows(self, begin: int, end: int) -> list[Standing]:
        """Return the rows from one position up to another, which is left out."""
        begin, end = max(0, begin), min(end, self.users)
        pages = range(begin // ROWS_IN_PAGE, -(-end // ROWS_IN_PAGE))
        found = [row for page in pages for row in self.read(page)]
        first = pages.start * ROWS_IN_PAGE
        return found[begin - first : end - first]

    def has(self, row: Standing) -> bool:
        """Whether a user has a row with this score."""
        return bool(self.firsts) and row.user_id in {
            each.user_id for each in self.read(self._page_of(place_of(row))) if each.score == row.score
        }

    def around(self, me: Standing) -> list[Standing]:
        """Return the rows around a user, with the user's own, which has the score that is given.

        The standing may have the user with an earlier score: that row is left out.
        """
        position = self.position(place_of(me))
        near = self.rows(position - AROUND - 1, position + AROUND + 2)
        others = [row for row in near if row.user_id != me.user_id]
        above = [row for row in others if place_of(row) < place_of(me)]
        below = [row for row in others if row not in above]
        return [*above[-AROUND:], me, *below[:AROUND]]


def first_places(pages: Sequence[Sequence[Standing]]) -> list[Place]:
    """Return the places of the pages' first rows."""
    places: list[Place] = []
    for page in reversed(pages):
        places.append(first_place(page, places[-1] if places else None))
    return places[::-1]


def first_place(page: Sequence[Standing], following: Place | None) -> Place:
    """Return the place of a page's first row. following: that of the next page; None: there is none.

    An erased user's row has the id of the next user with the same score; if there is none, an id after all.
    So the places of all pages stay in their order.
    """
    score = page[0].score
    same = next((row.user_id for row in page if row.user_id and row.score == score), "")
    next_user = following[1] if following and following[0] == -score else AFTER_ALL
    return -score, same or next_user


def without_user(rows: Iterable[Standing], user_id: str) -> list[Standing]:
    """Return rows of which an erased user's has no name any more."""
    return [Standing(row.score, "") if row.user_id == user_id else row for row in rows]
