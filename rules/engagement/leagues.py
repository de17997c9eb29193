"""Leagues: who goes up and down after a week in a cohort of about thirty (docs/rules.md, rule 27).

A league shows something and gives nothing: no points follow from it. In this order: when a week's league is
open; who is ranked; the ranking with its zones, which the page, the answer and the closing call.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from rules.book.daily import DailyTerms, rules_on
from rules.book.league_rules import LeagueRules
from rules.days import DAY, stamp
from rules.engagement.account_state import Profile
from rules.engagement.board_settings import is_hidden
from rules.engagement.boards import best_first, with_ranks
from rules.engagement.period_points import CLOSES_AFTER
from rules.engagement.periods import WEEKLY, Period, boards_in, counted_until, ends_at, period_of
from rules.engagement.review import was_under_review

# A cohort is closed so long after its league: until then its last entries and members are being written.
# Nobody joins the next league before, because the division follows from the last one.
SETTLES_IN = timedelta(minutes=10)


class Zone(StrEnum):
    """Where a member of a cohort goes after the week."""

    UP = "up"
    STAY = "stay"
    DOWN = "down"


class Row(NamedTuple):
    """A member's row in the standing of a cohort."""

    user_id: str
    rank: int  # who has the same points shares a rank: 1, 2, 2, 4
    points: int
    zone: Zone


def closes_at(week: Period, terms: DailyTerms) -> datetime:
    """Return the instant from which on no entry of the ledger changes the standing of a week's league."""
    return ends_at(week, terms) + CLOSES_AFTER


def closable_at(week: Period, terms: DailyTerms) -> datetime:
    """Return the instant from which on a week's cohorts are closed, and the next league is joined."""
    return closes_at(week, terms) + SETTLES_IN


def is_known(week: Period, terms: DailyTerms, now: datetime) -> bool:
    """Whether profiles still have what was counted in a week. If not, everybody keeps the division."""
    return now < counted_until(week, terms)


def week_of(day: date) -> Period:
    """Return the week of a date."""
    week = period_of(WEEKLY, day)
    assert week is not None  # noqa: S101 (a board per week has a period at each date)
    return week


def rules_of(week: Period, terms: DailyTerms) -> LeagueRules | None:
    """Return the rules of a week's league; None: it has none.

    They are those of the version that judges the date before the week, as for boards.
    """
    rules = rules_on(week.first - DAY, terms).leagues
    boards = boards_in(week, terms) if rules else ()
    return rules if rules and any(board.name == rules.board for board in boards) else None


def open_week(now: datetime, terms: DailyTerms) -> Period | None:
    """Return the week whose league may be joined now.

    None: no book has leagues, or one has closed less than ten minutes ago.
    """
    if not any(rules.leagues for _, rules in terms):
        return None
    week = week_of((now - timedelta(days=2)).date())
    while closes_at(week, terms) <= now:
        week = week_of(week.last + DAY)
    return week if closable_at(week_of(week.first - DAY), terms) <= now else None


def weeks_to_close(now: datetime, terms: DailyTerms) -> list[Period]:
    """Return the weeks whose cohorts may need to be closed, the earliest first.

    They are all that profiles have counted and whose league has closed. Older ones change nobody's division.
    """
    week, weeks = week_of(now.date()), list[Period]()
    while is_known(week, terms, now):
        if closable_at(week, terms) <= now and rules_of(week, terms):
            weeks.append(week)
        week = week_of(week.first - DAY)
    return weeks[::-1]


def league_points(profile: Profile, week: Period) -> int:
    """Return the points of a week's league: those of its board, without what came after the closing."""
    counted = (each for each in profile.period_points if each.period == week)
    return sum(each.points - each.late for each in counted)


def has_left(profile: Profile, left_at: str, at: datetime) -> bool:
    """Whether a user had left the leagues before an instant, or the boards: both are the same to a cohort.

    left_at: when the user left the leagues; "": never.
    """
    return (bool(left_at) and left_at < stamp(at)) or is_hidden(profile.board_settings, at)


def is_ranked(profile: Profile, left_at: str, at: datetime) -> bool:
    """Whether an account counts in its cohort: not under review, and gone from neither boards nor leagues.

    What begins at the instant or later changes nothing, so a late closing has the same result. Whose profile
    is not stored does not count: it is lost, or is being erased.
    """
    is_stored = profile.version > 0
    return is_stored and not (has_left(profile, left_at, at) or was_under_review(profile, at))


def may_join(profile: Profile, week: Period) -> bool:
    """Whether a user may join a week's league, as far as the profile says: with points, and ranked by now.

    Unlike in is_ranked, what has just begun counts. Who has left the leagues joins none either (Membership).
    """
    is_away = profile.tz_review or is_hidden(profile.board_settings)
    return not is_away and league_points(profile, week) > 0


def ranking(points: Mapping[str, int], rules: LeagueRules, division: int) -> list[Row]:
    """Return the standing of a cohort, best first: the only place that says who goes up and down.

    points: of all who are ranked, by user id. division: from 0, the lowest.

    In a cohort that is not full, fewer go up and down: in proportion, up rounded up and down rounded down.
    Who ties at an edge gets the better side: all who share the last rank that goes up go up, and of those who
    share a score at the lower edge nobody goes down. Who has no points does not go up.
    """
    members = best_first((user, max(0, score)) for user, score in points.items())
    rows, count = with_ranks(members), len(members)
    ups = -(-rules.up * count // rules.size) if division < len(rules.divisions) - 1 else 0
    downs = rules.down * count // rules.size if division > 0 else 0
    scores = [score for _, score in members]
    standing: list[Row] = []
    for row in rows:
        zone, score = Zone.STAY, row["score"]
        if row["rank"] <= ups and score:
            zone = Zone.UP
        elif sum(other <= score for other in scores) <= downs:
            zone = Zone.DOWN
        standing.append(Row(row["user_id"], row["rank"], score, zone))
    return standing


def division_after(zone: Zone, division: int) -> int:
    """Return the number of the division in which a member goes on."""
    return division + {Zone.UP: 1, Zone.STAY: 0, Zone.DOWN: -1}[zone]


@dataclass(frozen=True, slots=True)
class Place:
    """A cohort of one week."""

    week: str  # the period's name: 2026-W48
    division: int  # its number in the week's rules, from 0
    cohort: int  # from 1


class Outcome(NamedTuple):
    """What became of a user in a week's league."""

    week: str
    division: str  # the one that the user played in
    rank: int
    points: int
    zone: Zone
    members: int  # how many were ranked in the cohort
    cohort: int = 0  # its number in the division; 0: stored before outcomes had it


@dataclass(frozen=True, slots=True)
class Membership:
    """A user's place in the leagues, as it is kept: no ledger has it.

    Who joins no league for a year has the same division after it.
    """

    version: int = 0  # counts the writes; 0: nothing is stored
    division: int = 0  # the number of the division in which the user is or goes on
    name: str = ""  # of that division; "": of none yet
    place: Place | None = None  # the cohort of the newest league that the user has joined
    is_settled: bool = True  # whether `division` follows from that league
    outcome: Outcome | None = None  # the newest
    left_at: str = ""  # when the user has left the leagues; "": takes part

    @property
    def text(self) -> str:
        """The membership as it is kept, without its version."""
        plain = {
            "division": [self.division, self.name],
            "place": [self.place.week, self.place.division, self.place.cohort] if self.place else None,
            "is_settled": self.is_settled,
            "outcome": self.outcome,
            "left_at": self.left_at,
        }
        return json.dumps({name: value for name, value in plain.items() if value}, separators=(",", ":"))

    @classmethod
    def of(cls, text: str, version: int) -> "Membership":
        """Read what `text` wrote; raises ValueError for a damaged text."""
        kept = json.loads(text)
        try:
            number, name = kept["division"]
            place, outcome = kept.get("place"), kept.get("outcome")
            if outcome:
                outcome[4] = Zone(outcome[4])
            return cls(
                version,
                number,
                name,
                Place(*place) if place else None,
                kept.get("is_settled", False),
                Outcome(*outcome) if outcome else None,
                kept.get("left_at", ""),
            )
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError(f"no membership: {error!r}") from None

    def joining(self, week: Period, rules: LeagueRules, cohort: int) -> "Membership":
        """Return the membership of a user who joins a cohort. The last league's outcome must be known."""
        division = rules.division_of(self.name, self.division)
        place = Place(week.name, division, cohort)
        name = rules.divisions[division]
        return replace(self, division=division, name=name, place=place, is_settled=False)

    def leaving(self, now: datetime) -> "Membership":
        """Return the membership of a user who leaves the leagues."""
        return replace(self, left_at=stamp(now))

    def returning(self, *, has_seat: bool) -> "Membership":
        """Return the membership of a user who comes back.

        has_seat: the cohort of the user's league cannot have been closed yet. Then it is as if nobody had
        left. Otherwise the outcome of that league must be known.
        """
        back = replace(self, left_at="")
        return back if has_seat else back.beginning_anew()

    def beginning_anew(self) -> "Membership":
        """Return the membership of a user who had left when the league closed, or who comes back later.

        It goes on in the lowest division: nobody leaves just to escape from going down.
        """
        return replace(self, division=0, name="", is_settled=True)

    def settled(self, rules: LeagueRules, user_id: str, standing: Sequence[Row]) -> "Membership":
        """Return a user's membership after its cohort was closed. rules: of the cohort's week.

        Who is not in the standing, but under review, keeps the division, and the outcome of an earlier week.
        """
        row = next((row for row in standing if row.user_id == user_id), None)
        if row is None or self.place is None:
            return replace(self, is_settled=True)
        played = self.place.division
        outcome = Outcome(
            week=self.place.week,
            division=rules.divisions[played],
            rank=row.rank,
            points=row.points,
            zone=row.zone,
            members=len(standing),
            cohort=self.place.cohort,
        )
        division = division_after(row.zone, played)
        name = rules.divisions[division]
        return replace(self, division=division, name=name, is_settled=True, outcome=outcome)
