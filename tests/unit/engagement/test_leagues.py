"""Leagues: the weeks, and who goes up and down."""

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.book_store import shipped_document
from ingest.book_document import book_of_document
from rules.book.board_rules import BoardPeriod, BoardRule
from rules.book.book import Book, Books, Version
from rules.book.daily import DailyRules, daily_rules
from rules.book.document import BookRefused
from rules.book.league_rules import LeagueRules
from rules.engagement.account_state import Profile
from rules.engagement.board_settings import HIDDEN, YES, with_settings
from rules.engagement.goals import beginnings
from rules.engagement.leagues import (
    Membership,
    Outcome,
    Place,
    Row,
    Zone,
    closable_at,
    closes_at,
    is_ranked,
    open_week,
    ranking,
    rules_of,
    week_of,
    weeks_to_close,
)
from rules.engagement.periods import Period

RULES = LeagueRules("weekly", ("bronze", "silver", "gold"), 30, 7, 7)
BOARDS = (BoardRule("weekly", BoardPeriod.WEEK),)
TERMS = ((date.min, DailyRules(boards=BOARDS, leagues=RULES)),)
W48 = Period(date(2026, 11, 23), date(2026, 11, 29))
W49 = Period(date(2026, 11, 30), date(2026, 12, 6))
BRONZE, SILVER, GOLD = range(3)


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-{text}").replace(tzinfo=UTC)


def zones(scores: list[int], division: int = SILVER, rules: LeagueRules = RULES) -> str:
    """The zones of a cohort, best first: U, S and D."""
    rows = ranking({f"u{number:02}": score for number, score in enumerate(scores)}, rules, division)
    return "".join(row.zone.value[0].upper() for row in rows)


# ---- weeks


def test_a_league_closes_on_monday_at_18_utc() -> None:
    assert closes_at(W48, TERMS) == at("11-30T18:00")  # the week ends in UTC-12 at 12:00


def test_a_league_of_days_that_begin_at_three_closes_three_hours_later() -> None:
    late = DailyRules(day_starts_at=time(3), boards=BOARDS, leagues=RULES)
    assert closes_at(W48, ((date.min, late),)) == at("11-30T21:00")


@pytest.mark.parametrize(
    ("now", "week"),
    [
        ("11-30T17:59", W48),  # also on Monday: the day farthest west has just ended
        ("11-30T18:00", None),  # nobody joins until the cohorts may be closed
        ("11-30T18:09", None),
        ("11-30T18:10", W49),
        ("12-06T23:59", W49),
    ],
)
def test_one_league_is_open_at_a_time(now: str, week: Period | None) -> None:
    assert open_week(at(now), TERMS) == week


@given(st.integers(631_152_000, 3_786_912_000))  # 1990 to 2090
def test_the_open_league_is_the_only_one_that_is_not_closed(second: int) -> None:
    now = datetime.fromtimestamp(second, UTC)
    week = open_week(now, TERMS)
    if week is None:
        last = week_of((now - timedelta(days=2)).date())
        assert closes_at(last, TERMS) <= now < closable_at(last, TERMS)
    else:
        assert closable_at(week_of(week.first - timedelta(days=1)), TERMS) <= now < closes_at(week, TERMS)
        assert week not in weeks_to_close(now, TERMS)


def test_each_week_is_closed_in_its_own_window() -> None:
    """A missed closing changes nothing of the weeks after it, and after two weeks it is still made."""
    assert weeks_to_close(at("11-30T18:09"), TERMS)[-1].name == "2026-W47"
    assert weeks_to_close(at("11-30T18:10"), TERMS)[-1] == W48
    assert W48 in weeks_to_close(at("12-15T18:00"), TERMS)
    assert W48 not in weeks_to_close(at("12-19T18:00"), TERMS)


def test_the_version_of_the_date_before_a_week_judges_it() -> None:
    declared = (date(2026, 11, 25), DailyRules(boards=BOARDS, leagues=RULES))
    terms = ((date.min, DailyRules(boards=BOARDS)), declared)
    assert rules_of(W48, terms) is None
    assert rules_of(W49, terms) == RULES
    ended = (*terms, (date(2026, 12, 1), DailyRules(boards=BOARDS)))
    assert rules_of(W49, ended) == RULES  # what has begun ends as it began
    assert weeks_to_close(at("12-08T00:00"), ended) == [W49]


# ---- who is ranked


def test_a_review_or_leaving_after_the_closing_changes_nothing() -> None:
    closing = at("11-30T18:00")
    before, after = "2026-11-30T17:59:59.999999Z", "2026-11-30T18:00:00.000000Z"
    ann = Profile("ann", 1)
    assert is_ranked(ann, "", closing)
    assert not is_ranked(replace(ann, tz_review=True, review_since=before), "", closing)
    assert not is_ranked(ann, before, closing)
    assert is_ranked(replace(ann, tz_review=True, review_since=after), after, closing)
    assert not is_ranked(Profile("ann"), "", closing), "nobody has the profile"
    released = replace(ann, reviewed_since=before, released_at=after)
    assert not is_ranked(released, "", closing)  # was under review when the league closed


def test_who_has_left_the_boards_is_in_no_league() -> None:
    closing = at("11-30T18:00")
    left = replace(Profile("ann", 1), board_settings=with_settings((), {HIDDEN: YES}, at("11-27T00:00")))
    assert not is_ranked(left, "", closing)
    assert is_ranked(left, "", at("11-26T00:00"))


# ---- zones


def test_a_full_cohort_moves_as_the_book_says() -> None:
    assert zones(list(range(30, 0, -1))) == "U" * 7 + "S" * 16 + "D" * 7


def test_nobody_falls_from_the_lowest_nor_rises_from_the_highest() -> None:
    full = list(range(30, 0, -1))
    assert zones(full, BRONZE) == "U" * 7 + "S" * 23
    assert zones(full, GOLD) == "S" * 23 + "D" * 7


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, ""), (1, "U"), (2, "US"), (4, "USSS"), (5, "UUSSD"), (10, "UUUSSSSSDD"), (15, "UUUUSSSSSSSSDDD")],
)
def test_a_small_cohort_moves_in_proportion(count: int, expected: str) -> None:
    assert zones(list(range(count, 0, -1))) == expected


def test_ties_at_an_edge_have_the_better_side() -> None:
    assert zones([9, 8, 7, 6, 5, 4, *[3] * 4, *[2] * 13, *[1] * 7]) == "U" * 10 + "S" * 13 + "D" * 7
    assert zones([*range(40, 17, -1), *[1] * 8][-30:]) == "U" * 7 + "S" * 23  # eight share seven places


def test_who_has_no_points_does_not_go_up() -> None:
    assert zones([5, 0, 0, 0, 0]) == "USSSS"
    assert zones([0] * 3) == "SSS"
    assert zones([0, -4, 5]) == "USS"  # points that were taken back again


def test_ranks_are_shared() -> None:
    rows = ranking({"ann": 5, "bob": 9, "cid": 5, "dan": 1}, RULES, SILVER)
    assert rows == [
        Row("bob", 1, 9, Zone.UP),
        Row("ann", 2, 5, Zone.STAY),
        Row("cid", 2, 5, Zone.STAY),
        Row("dan", 4, 1, Zone.STAY),
    ]


@st.composite
def leagues(draw: st.DrawFn) -> tuple[LeagueRules, int, dict[str, int]]:
    size = draw(st.integers(5, 50))
    up = draw(st.integers(1, size - 1))
    down = draw(st.integers(0, size - 1 - up))
    count = draw(st.integers(2, 20))
    rules = LeagueRules("weekly", tuple(f"d{number}" for number in range(count)), size, up, down)
    users = draw(st.integers(0, size))
    scores = draw(st.lists(st.integers(-5, 12), min_size=users, max_size=users))
    points = {f"u{number}": score for number, score in enumerate(scores)}
    return rules, draw(st.integers(0, count - 1)), points


@given(leagues())
def test_zones_are_as_they_are_told_in_words(made: tuple[LeagueRules, int, dict[str, int]]) -> None:
    """A second reading of the rule, from each member's own place."""
    rules, division, points = made
    standing = {row.user_id: row for row in ranking(points, rules, division)}
    assert standing.keys() == points.keys()
    count = len(points)
    for user, score in points.items():
        own, row = max(score, 0), standing[user]
        above = sum(max(other, 0) > own for other in points.values())
        below = sum(max(other, 0) < own for other in points.values())
        ties = count - above - below
        assert (row.rank, row.points) == (above + 1, own)
        may_rise = division + 1 < len(rules.divisions) and own > 0
        may_fall = division > 0
        rises = may_rise and above * rules.size < rules.up * count
        falls = may_fall and (ties + below) * rules.size <= rules.down * count
        assert not (rises and falls)
        assert row.zone == (Zone.UP if rises else Zone.DOWN if falls else Zone.STAY)


@given(leagues())
def test_more_points_never_lead_to_a_worse_zone(made: tuple[LeagueRules, int, dict[str, int]]) -> None:
    rules, division, points = made
    order = [Zone.UP, Zone.STAY, Zone.DOWN]
    ranked = [order.index(row.zone) for row in ranking(points, rules, division)]
    assert ranked == sorted(ranked)


# ---- memberships


def test_a_membership_survives_its_text() -> None:
    outcome = Outcome("2026-W47", "bronze", 3, 40, Zone.UP, 29)
    for each in (
        Membership(7),
        Membership(7, 1, "silver", Place("2026-W48", 1, 17), False, outcome),
        Membership(7, 1, "silver", None, True, None, "2026-11-30T18:00:00.000000Z"),
    ):
        assert Membership.of(each.text, 7) == each


@pytest.mark.parametrize("damaged", ["", "[]", "{}", '{"division": [0]}', '{"division": 3}'])
def test_a_damaged_text_is_no_membership(damaged: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Membership.of(damaged, 1)


def test_a_week_in_the_leagues() -> None:
    joined = Membership(1).joining(W48, RULES, 4)
    assert (joined.name, joined.place, joined.is_settled) == ("bronze", Place("2026-W48", 0, 4), False)
    rows = [Row("ann", 1, 30, Zone.UP), Row("bob", 2, 5, Zone.STAY)]
    ann, bob, cid = (joined.settled(RULES, user, rows) for user in ("ann", "bob", "cid"))
    assert (ann.division, ann.name) == (1, "silver")
    assert ann.outcome == Outcome("2026-W48", "bronze", 1, 30, Zone.UP, 2, 4)
    assert (bob.division, bob.name, bob.is_settled) == (0, "bronze", True)
    assert (cid.name, cid.outcome, cid.is_settled) == ("bronze", None, True)  # was not ranked
    assert ann.joining(W49, RULES, 1).place == Place("2026-W49", 1, 1)


def test_a_book_with_other_divisions_sends_nobody_to_the_lowest() -> None:
    gold = Membership(3, 2, "gold")
    more = replace(RULES, divisions=("wood", "bronze", "silver", "gold"))
    assert gold.joining(W48, more, 1).place == Place("2026-W48", 3, 1)  # by its name
    renamed = replace(RULES, divisions=("one", "two", "three"))
    assert gold.joining(W48, renamed, 1).name == "three"  # by its number
    fewer = replace(RULES, divisions=("one", "two"))
    assert gold.joining(W48, fewer, 1).name == "two"


def test_who_comes_back_after_the_week_begins_in_the_lowest() -> None:
    """Nobody leaves on Sunday just to escape from going down."""
    joined = Membership(1, 2, "gold").joining(W48, RULES, 4)
    left = joined.leaving(at("11-29T20:00"))
    assert left.returning(has_seat=True) == joined
    assert left.returning(has_seat=False).joining(W49, RULES, 1).name == "bronze"


# ---- the book

BOARD_SECTION = {
    "weekly": {"per": "week"},
    "classes": {"per": "week", "group": "class"},
    "m": {"per": "month"},
}
SECTION: dict[str, Any] = {
    "board": "weekly",
    "divisions": ["bronze", "silver"],
    "size": 30,
    "up": 7,
    "down": 7,
}


def a_book(leagues: Any) -> Book:
    document = shipped_document() | {"boards": BOARD_SECTION}
    return book_of_document(document | ({"leagues": leagues} if leagues else {}))


def test_a_book_declares_leagues() -> None:
    book = a_book(SECTION)
    assert book.daily.leagues == LeagueRules("weekly", ("bronze", "silver"), 30, 7, 7)
    assert daily_rules(None, BOARD_SECTION, SECTION) == book.daily  # as the book's item in lists says


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"board": "yearly"}, "leagues.board names yearly, which is no board"),
        ({"board": "m"}, "leagues.board names m, which is not per week and without group"),
        ({"board": "classes"}, "leagues.board names classes, which is not per week and without group"),
        ({"size": 14}, "leagues.size is not above up + down: nobody would stay"),
        ({"size": 4}, "leagues.size must be"),
        ({"size": 51}, "leagues.size must be"),
        ({"up": 0}, "leagues.up must be"),
        ({"divisions": ["bronze"]}, "leagues.divisions must "),
        ({"divisions": ["bronze", "bronze"]}, "leagues.divisions must "),
        ({"prize": 5}, "leagues.prize is unknown"),
    ],
)
def test_leagues_are_refused_by_field_and_reason(changed: dict[str, Any], fault: str) -> None:
    with pytest.raises(BookRefused) as refused:
        a_book({**SECTION, **changed})
    assert str(refused.value).startswith(fault)


def test_a_new_book_says_when_leagues_begin_and_end() -> None:
    def version(number: int, leagues: Any, day: str) -> Version:
        return Version(number, at(day), lambda: a_book(leagues), at(day))

    books = Books(
        [
            version(1, None, "01-01T00:00"),
            version(2, SECTION, "11-25T00:00"),
            version(3, {**SECTION, "size": 20}, "12-02T00:00"),
            version(4, None, "12-09T00:00"),
        ]
    )
    said = [line for each in books.versions[1:] for line in beginnings(books, each) if "leagues" in line]
    assert said == [
        "leagues: begin with the week 2026-W49; the one before closes as it began",
        "leagues: change with the week 2026-W50; the one before closes as it began",
        "leagues: end with the week 2026-W51; the one before closes as it began",
    ]
    assert rules_of(W49, books.daily_terms) is not None
    assert weeks_to_close(at("12-15T00:00"), books.daily_terms) == [W49, week_of(date(2026, 12, 7))]
