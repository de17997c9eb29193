"""Leagues: how users join, and how cohorts are closed, once, whoever does it, and when."""

import itertools
import random
import zlib
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from adapters.engagement import leagues as leagues_module
from adapters.engagement.account_items import LEAGUE, profile_attributes
from adapters.platform.items import encode_item
from adapters.platform.tables import Unprocessed, scan_all
from adapters.privacy.stores import BoardEraser
from rules.days import stamp
from rules.engagement.account_state import Profile
from rules.engagement.board_settings import HIDDEN, YES, with_settings
from rules.engagement.leagues import Membership, Outcome, Place, Zone, week_of
from rules.engagement.period_points import PeriodPoints
from rules.privacy.erasures import Person
from rules.user_ids import kept_partition
from tests.support.dying import FAILURES, Dying, Killed
from tests.support.engine import Engine
from tests.support.league_town import (
    CLOSED_W48,
    FOREVER,
    IN_W48,
    IN_W49,
    IN_W50,
    RULES,
    W48,
    W49,
    W50,
    LeagueTown,
    player,
)

MINUTE, WEEK = timedelta(minutes=1), timedelta(days=7)
TEN = {f"u{number}": 100 - number for number in range(10)}
BRONZE_1 = Place("2026-W48", 0, 1)


@pytest.fixture
def town(engine: Engine) -> LeagueTown:
    return LeagueTown(engine.client("dynamodb"))


def zones(town: LeagueTown, users: Any = TEN) -> str:
    outcomes = (town.membership(user).outcome for user in users)
    return "".join(each.zone.value[0].upper() if each else "-" for each in outcomes)


# ---- joining


def test_the_first_points_of_a_week_let_a_user_join(town: LeagueTown) -> None:
    town.play(W48, {"ann": 5}, IN_W48)
    membership = town.membership("ann")
    assert (membership.name, membership.place, membership.is_settled) == ("bronze", BRONZE_1, False)
    assert town.rosters() == {BRONZE_1: {"ann"}}


def test_a_second_event_writes_nothing(town: LeagueTown) -> None:
    process = town.process()
    town.play(W48, {"ann": 5}, IN_W48, process)
    before = town.stored()
    town.play(W48, {"ann": 9}, IN_W48, process)  # a process that knows
    town.play(W48, {"ann": 9}, IN_W48)  # and one that does not
    assert town.stored() == before


def test_who_has_no_points_of_the_open_week_does_not_join(town: LeagueTown) -> None:
    """On Monday the week before is still open: nobody joins it only to go down in the evening."""
    town.play(W49, {"ann": 5}, CLOSED_W48 - 20 * MINUTE)
    town.play(W48, {"bob": 0}, IN_W48)
    town.play(W48, {"cid": 5}, CLOSED_W48 - MINUTE)  # it has closed
    assert town.rosters() == {}
    town.play(W49, {"ann": 5}, CLOSED_W48)
    assert town.membership("ann").place == Place("2026-W49", 0, 1)


def test_a_full_cohort_leads_to_the_next(town: LeagueTown) -> None:
    town.play(W48, {f"u{number}": 5 for number in range(23)}, IN_W48)
    assert [len(members) for _, members in sorted(town.rosters().items(), key=str)] == [10, 10, 3]


def test_a_process_that_has_slept_finds_the_newest_cohort(town: LeagueTown) -> None:
    sleeper = town.process()
    town.play(W48, {"first": 5}, IN_W48, sleeper)
    town.play(W48, {f"u{number}": 5 for number in range(42)}, IN_W48)
    town.play(W48, {"last": 5}, IN_W48, sleeper)
    assert town.membership("last").place == Place("2026-W48", 0, 5)


def test_nobody_under_review_joins(town: LeagueTown) -> None:
    profile = player("ann", {W48: 5}, tz_review=True, review_since=stamp(IN_W48))
    assert town.process().join_all([profile], IN_W48) == 0
    assert town.rosters() == {}


def test_nobody_joins_who_has_left_the_boards(town: LeagueTown) -> None:
    hidden = with_settings((), {HIDDEN: YES}, IN_W48)
    assert town.process().join_all([player("ann", {W48: 5}, board_settings=hidden)], IN_W48) == 0


def test_a_fault_of_leagues_holds_no_points_up(town: LeagueTown, monkeypatch: pytest.MonkeyPatch) -> None:
    process = town.process()
    monkeypatch.setattr(process.store, "memberships", lambda _: 1 / 0)
    assert process.join_all([player("ann", {W48: 5})], IN_W48) == 0


def test_one_user_s_failure_does_not_stop_those_who_come_after(
    town: LeagueTown, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = town.process()
    enter = process.store.enter

    def failing(place: Place, user: str, *given: Any) -> bool:
        return enter(place, user, *given) if user != "bob" else bool(1 / 0)

    monkeypatch.setattr(process.store, "enter", failing)
    assert process.join_all([player(user, {W48: 5}) for user in ("ann", "bob", "cid")], IN_W48) == 2
    assert town.rosters() == {BRONZE_1: {"ann", "cid"}}


DAMAGES = {
    "no version": {"version": None},
    "a text of points": {"period_points": {"S": "damaged"}},
    "settings of another kind": {"board_settings": {"N": "7"}},
}


def damage(town: LeagueTown, user: str, attributes: Mapping[str, Any]) -> None:
    item: dict[str, Any] = {**encode_item(profile_attributes(player(user, {W48: 5}))), **attributes}
    kept = {name: value for name, value in item.items() if value is not None}
    town.dynamodb.put_item(TableName=town.table("UserStreaks"), Item=kept)


@pytest.mark.parametrize("attributes", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_profile_stops_no_other_member(
    town: LeagueTown, attributes: Mapping[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """It is in no standing, and keeps its division. The nightly run repairs it."""
    town.play(W48, TEN, IN_W48)
    damage(town, "u0", attributes)
    league = town.process().state("u1", IN_W48).league
    assert league
    assert [row.user_id for row in league.ranked.standing] == [f"u{number}" for number in range(1, 10)]
    assert town.process().close_due(CLOSED_W48, FOREVER) == Counter(finished=1)
    assert zones(town) == "-UUUSSSSSS"
    said = [record for record in caplog.records if record.levelname == "ERROR"]
    assert {record.message for record in said} == {"profile cannot be read"}
    assert {getattr(record, "user_id") for record in said} == {"u0"}  # noqa: B009 (the logger adds it)


def test_a_cohort_that_cannot_be_closed_stops_no_other(
    town: LeagueTown, monkeypatch: pytest.MonkeyPatch
) -> None:
    town.play(W48, {f"u{number}": 5 for number in range(12)}, IN_W48)
    process = town.process()
    finish = process.finish

    def failing(cohort: Any, *given: Any) -> None:
        finish(cohort, *given) if cohort.place.cohort > 1 else 1 / 0

    monkeypatch.setattr(process, "finish", failing)
    assert process.close_due(CLOSED_W48, FOREVER) == Counter(finished=1, failed=1)


def test_joining_is_tried_again_and_never_raises(town: LeagueTown) -> None:
    for failure in ("throttled", "answer lost"):
        for number in (1, 2, 3, 4):
            user = f"{failure}-{number}"
            town.play(W48, {user: 5}, IN_W48, town.process(Dying(town.dynamodb, number, failure)))
            town.play(W48, {user: 5}, IN_W48)
            place = town.membership(user).place
            assert place is not None
            assert user in town.rosters()[place]


def test_many_join_at_once_and_no_cohort_has_too_many(town: LeagueTown) -> None:
    crowd = [player(f"u{number}", {W48: 5}) for number in range(120)]
    processes = [town.process() for _ in range(8)]
    # each user comes to three processes, at the same time as many others
    work = [(process, profile) for profile in crowd for process in random.sample(processes, 3)]
    random.shuffle(work)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda each: each[0].join_all([each[1]], IN_W48), work))
    rosters = town.rosters()
    assert max(len(members) for members in rosters.values()) <= RULES.size
    places = {profile.user_id: town.membership(profile.user_id).place for profile in crowd}
    assert None not in places.values()
    for user, place in places.items():
        assert place and user in rosters[place]
    # nobody is ranked twice, even if two processes have named a user in two cohorts
    town.put(crowd)
    town.process().close_due(CLOSED_W48, FOREVER)
    members = Counter(
        town.membership(user).outcome.members if town.membership(user).outcome else 0  # type: ignore[union-attr]
        for user in places
    )
    assert members[0] == 0


# ---- closing


def test_a_week_is_closed_and_everybody_gets_an_outcome(town: LeagueTown) -> None:
    town.play(W48, TEN, IN_W48)
    assert town.process().close_due(CLOSED_W48 - MINUTE, FOREVER) == Counter()
    assert town.process().close_due(CLOSED_W48, FOREVER) == Counter(finished=1)
    assert zones(town) == "UUUSSSSSSS"  # nobody goes down from bronze
    first = town.membership("u0")
    assert (first.name, first.division) == ("silver", 1)
    assert first.outcome == Outcome("2026-W48", "bronze", 1, 100, Zone.UP, 10, 1)


def test_a_closed_week_names_nobody_any_more(town: LeagueTown) -> None:
    town.play(W48, TEN, IN_W48)
    town.process().close_due(CLOSED_W48, FOREVER)
    cohort = town.process().store.cohort(BRONZE_1)
    assert cohort and cohort.standing
    assert cohort.members == frozenset()
    assert [(row.user_id, row.rank, row.zone) for row in cohort.standing][:4] == [
        ("", 1, Zone.UP),
        ("", 2, Zone.UP),
        ("", 3, Zone.UP),
        ("", 4, Zone.STAY),
    ]


def test_a_finished_week_costs_one_read_and_then_none(town: LeagueTown) -> None:
    town.play(W48, TEN, IN_W48)
    closing = town.process()
    assert closing.close_due(CLOSED_W48, FOREVER) == Counter(finished=1)
    before = town.stored()
    assert closing.close_due(CLOSED_W48, FOREVER) == Counter()
    assert town.stored() == before


def test_three_weeks_up_and_down(town: LeagueTown) -> None:
    town.play(W48, TEN, IN_W48)
    town.process().close_due(CLOSED_W48, FOREVER)
    # three in silver, four in bronze, and three are on holiday
    town.play(W49, {"u0": 9, "u1": 8, "u2": 7, "u3": 6, "u4": 5, "u5": 4, "u6": 3}, IN_W49)
    assert town.rosters()[Place("2026-W49", 1, 1)] == {"u0", "u1", "u2"}
    assert town.rosters()[Place("2026-W49", 0, 1)] == {"u3", "u4", "u5", "u6"}
    town.process().close_due(CLOSED_W48 + WEEK, FOREVER)
    divisions = [town.membership(user).name for user in TEN]
    assert divisions == ["gold", *["silver"] * 4, *["bronze"] * 5]
    assert town.membership("u9").outcome == Outcome("2026-W48", "bronze", 10, 91, Zone.STAY, 10, 1)


def test_what_comes_after_the_closing_counts_on_the_board_only(town: LeagueTown) -> None:
    town.play(W48, TEN, IN_W48)
    late = replace(player("u9", {}), period_points=(PeriodPoints(W48, 591, 500),))
    town.put([late])
    town.process().close_due(CLOSED_W48 + 60 * MINUTE, FOREVER)
    outcome = town.membership("u9").outcome
    assert outcome and (outcome.rank, outcome.points) == (10, 91)


def test_a_review_and_leaving_take_part_in_nothing(town: LeagueTown) -> None:
    town.play(W48, TEN, IN_W48)
    town.put([player("u0", {W48: 100}, tz_review=True, review_since=stamp(IN_W48))])
    town.put([player("u1", {W48: 99}, tz_review=True, review_since=stamp(CLOSED_W48))])  # too late
    town.process().take_part("u2", IN_W48, takes_part=False)
    town.process().close_due(CLOSED_W48 + MINUTE, FOREVER)
    assert zones(town) == "-U-UUSSSSS"  # eight are ranked
    assert (town.membership("u0").division, town.membership("u2").division) == (0, 0)


def test_a_name_in_a_second_roster_counts_nowhere(town: LeagueTown) -> None:
    """A process died between its two writes, and the user joined again elsewhere."""
    town.play(W48, TEN, IN_W48)
    town.play(W48, {"ann": 500}, IN_W48)
    assert town.membership("ann").place == Place("2026-W48", 0, 2)
    place = Place("2026-W48", 0, 3)
    for user in ("ann", "nobody"):
        assert town.process().store.enter(place, user, RULES.size, CLOSED_W48)
    town.play(W48, {"bob": 1}, IN_W48)
    town.process().close_due(CLOSED_W48, FOREVER)
    assert town.membership("ann").outcome == Outcome("2026-W48", "bronze", 1, 500, Zone.UP, 1, 2)
    assert town.membership("bob").outcome == Outcome("2026-W48", "bronze", 1, 1, Zone.UP, 1, 3)
    assert town.membership("nobody").version == 0


# ---- once, whoever closes and when


def outcomes_of(town: LeagueTown, users: Any) -> list[tuple[str, Outcome | None, bool]]:
    memberships = (town.membership(user) for user in users)
    return [(each.name, each.outcome, each.is_settled) for each in memberships]


CROWD = {f"u{number:02}": 1 + (number * 7) % 23 for number in range(23)}


@pytest.fixture(scope="module")
def expected(engine: Engine) -> list[Any]:
    town = LeagueTown(engine.client("dynamodb"))
    town.play(W48, CROWD, IN_W48)
    town.process().close_due(CLOSED_W48, FOREVER)
    return outcomes_of(town, CROWD)


@pytest.mark.parametrize("late", [timedelta(0), timedelta(days=7), timedelta(days=14), timedelta(days=17)])
def test_a_late_closing_has_the_same_outcome(town: LeagueTown, expected: list[Any], late: timedelta) -> None:
    town.play(W48, CROWD, IN_W48)
    town.process().close_due(CLOSED_W48 + late, FOREVER)
    assert outcomes_of(town, CROWD) == expected


def test_a_closing_that_comes_too_late_moves_nobody(town: LeagueTown) -> None:
    """Then nobody knows the points of the week any more. All keep their divisions, and may join again."""
    town.play(W48, TEN, IN_W48)
    town.process().close_due(CLOSED_W48, FOREVER)
    town.play(W49, {"u0": 9, "u3": 5}, IN_W49)
    much_later = IN_W49 + 6 * WEEK
    week = week_of(much_later.date())
    assert town.process().close_due(much_later, FOREVER) == Counter()
    town.play(week, {"u0": 3, "u3": 3}, much_later)
    assert [town.membership(user).name for user in ("u0", "u3")] == ["silver", "bronze"]
    assert [town.membership(user).place for user in ("u0", "u3")] == [
        Place(week.name, 1, 1),
        Place(week.name, 0, 1),
    ]


def test_a_missed_closing_sends_nobody_to_the_lowest(town: LeagueTown) -> None:
    """Each week is closed in its own window, by the job or by who goes on playing."""
    town.play(W48, TEN, IN_W48)
    town.play(W49, {"u0": 9, "u1": 8, "u4": 3, "u5": 2}, IN_W49)  # no job has run
    assert [town.membership(user).name for user in ("u0", "u4")] == ["silver", "bronze"]
    town.play(W50, {"u0": 9, "u5": 2}, IN_W50)
    assert town.process().close_due(IN_W50, FOREVER)["failed"] == 0
    assert [town.membership(user).name for user in ("u0", "u1", "u2", "u4", "u5", "u9")] == [
        *["gold", "silver", "silver", "silver", "bronze", "bronze"],
    ]


def test_who_plays_on_closes_the_last_cohort(town: LeagueTown, expected: list[Any]) -> None:
    town.play(W48, CROWD, IN_W48)
    first = next(iter(CROWD))
    profile = player(first, {W48: CROWD[first], W49: 2})
    town.put([profile])
    assert town.process().join_all([profile], CLOSED_W48) == 1
    closed = town.process().store.cohort(BRONZE_1)
    assert closed and closed.standing and closed.members
    town.process().close_due(CLOSED_W48, FOREVER)
    assert [each[:2] for each in outcomes_of(town, CROWD)] == [each[:2] for each in expected]


def test_nobody_closes_a_cohort_before_its_time(town: LeagueTown) -> None:
    town.play(W48, TEN, IN_W48)
    town.put([player("u0", {W48: 1, W49: 1})])
    assert town.process().join_all([player("u0", {W48: 1, W49: 1})], CLOSED_W48 - MINUTE) == 0
    cohort = town.process().store.cohort(BRONZE_1)
    assert cohort and cohort.standing is None


def test_two_who_close_at_once_agree(town: LeagueTown, expected: list[Any]) -> None:
    town.play(W48, CROWD, IN_W48)
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(town.process().close_due, CLOSED_W48, FOREVER) for _ in range(4)]
        counts = [run.result() for run in runs]
    assert sum(each["failed"] for each in counts) == 0
    assert outcomes_of(town, CROWD) == expected


@pytest.mark.parametrize("how", FAILURES)
def test_a_closing_that_dies_at_any_call_is_finished_by_the_next(
    engine: Engine, expected: list[Any], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leagues_module, "WRITERS", 1)
    for call in itertools.count(1, 3):
        town = LeagueTown(engine.client("dynamodb"))
        town.play(W48, CROWD, IN_W48)
        dying = Dying(town.dynamodb, call, how)
        with suppress(Killed, EndpointConnectionError, Exception):
            town.process(dying).close_due(CLOSED_W48, FOREVER)
        is_over = dying._left > 0
        # the next run comes a week later, when some have gone on playing
        players = dict(itertools.islice(CROWD.items(), 0, None, 5))
        profiles = [player(user, {W48: CROWD[user], W49: 1}) for user in players]
        town.put(profiles)
        town.process().join_all(profiles, IN_W49)
        town.process().close_due(IN_W49 + timedelta(days=3), FOREVER)
        assert [each[:2] for each in outcomes_of(town, CROWD)] == [each[:2] for each in expected], call
        assert not any(place.week == "2026-W48" and members for place, members in town.rosters().items())
        if is_over:
            assert call > 20
            return


def test_a_run_without_time_leaves_cohorts_to_the_next(town: LeagueTown, expected: list[Any]) -> None:
    town.play(W48, CROWD, IN_W48)
    assert town.process().close_due(CLOSED_W48, 0.0)["finished"] == 0
    assert town.process().close_due(CLOSED_W48, FOREVER) == Counter(finished=3)
    assert outcomes_of(town, CROWD) == expected


# ---- leaving


def test_who_has_left_joins_nothing_and_may_come_back(town: LeagueTown) -> None:
    town.play(W48, TEN, IN_W48)
    leagues = town.process()
    leagues.take_part("u0", IN_W48, takes_part=False)
    state = leagues.state("u1", IN_W48 + MINUTE)
    assert state.league
    assert "u0" not in {row.user_id for row in state.league.ranked.standing}
    leagues.take_part("u0", IN_W48, takes_part=True)  # the seat is still there
    town.process().close_due(CLOSED_W48, FOREVER)
    assert town.membership("u0").name == "silver"
    leagues.take_part("u0", IN_W49, takes_part=False)
    town.play(W49, {"u0": 5}, IN_W49)
    assert town.membership("u0").place == BRONZE_1
    leagues.take_part("u0", IN_W49, takes_part=True)
    town.play(W49, {"u0": 5}, IN_W49)
    assert town.membership("u0").place == Place("2026-W49", 0, 1)  # in the lowest division


@pytest.mark.parametrize("late", [timedelta(), timedelta(days=7)])
def test_coming_back_before_a_late_closing_changes_nothing(town: LeagueTown, late: timedelta) -> None:
    """u0 was away when the league closed, and u1 was not: the result knows it, whenever it is made."""
    town.play(W48, TEN, IN_W48)
    town.process().take_part("u0", IN_W48, takes_part=False)
    if not late:
        town.process().close_due(CLOSED_W48, FOREVER)
    town.process().take_part("u1", CLOSED_W48, takes_part=False)
    for user in ("u0", "u1"):
        town.process().take_part(user, CLOSED_W48 + MINUTE, takes_part=True)
    town.process().close_due(CLOSED_W48 + late, FOREVER)
    assert zones(town) == "-UUUSSSSSS"  # nine are ranked
    assert [town.membership(user).name for user in ("u0", "u1", "u2")] == ["", "", "silver"]
    assert town.membership("u1").outcome == Outcome("2026-W48", "bronze", 1, 99, Zone.UP, 9, 1)


def test_coming_back_after_a_closing_has_died_changes_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leagues_module, "WRITERS", 1)
    for call in itertools.count(1):
        town = LeagueTown(engine.client("dynamodb"))
        town.play(W48, TEN, IN_W48)
        town.process().take_part("u0", IN_W48, takes_part=False)
        dying = Dying(town.dynamodb, call, "dies after")
        with suppress(Killed):
            town.process(dying).close_due(CLOSED_W48, FOREVER)
        town.process().take_part("u0", CLOSED_W48 + MINUTE, takes_part=True)
        town.process().close_due(CLOSED_W48 + 2 * MINUTE, FOREVER)
        assert zones(town) == "-UUUSSSSSS", call
        if dying._left > 0:
            assert call > 10
            return


def test_who_comes_back_in_the_minutes_after_the_closing_has_the_seat(town: LeagueTown) -> None:
    """Nobody can have closed the cohort yet."""
    town.play(W48, TEN, IN_W48)
    town.process().take_part("u0", IN_W48, takes_part=False)
    town.process().take_part("u0", CLOSED_W48 - MINUTE, takes_part=True)
    town.process().close_due(CLOSED_W48, FOREVER)
    assert (zones(town), town.membership("u0").name) == ("UUUSSSSSSS", "silver")


SILVER_1 = Place("2026-W49", 1, 1)


@pytest.fixture
def silver(town: LeagueTown) -> LeagueTown:
    """Ten users in a cohort of silver, which closes a week after CLOSED_W48: u9 is the last."""
    for user in TEN:
        membership = Membership(division=1, name="silver")
        assert town.process().store.put_membership(user, Membership(), membership)
    town.play(W49, TEN, IN_W49)
    assert town.rosters() == {SILVER_1: set(TEN)}
    return town


def hide(town: LeagueTown, user: str, since: datetime, until: datetime | None = None) -> Profile:
    settings = with_settings((), {HIDDEN: YES}, since)
    if until:
        settings = with_settings(settings, {HIDDEN: ""}, until)
    hidden = player(user, town.scores[user], board_settings=settings)
    town.put([hidden])
    return hidden


@pytest.mark.parametrize("closes", ["the job", "who plays on", "who has hidden"])
def test_nobody_leaves_the_boards_just_to_escape_from_going_down(silver: LeagueTown, closes: str) -> None:
    """Hidden a minute before the closing, and back before anybody has closed the cohort."""
    closed = CLOSED_W48 + WEEK
    profile = hide(silver, "u9", closed - 11 * MINUTE, closed - MINUTE)
    if closes == "who plays on":
        silver.play(W50, {"u0": 5}, closed)
    if closes != "who has hidden":
        silver.process().close_due(closed, FOREVER)
    profile = replace(profile, period_points=(*profile.period_points, PeriodPoints(W50, 5)))
    silver.put([profile])
    assert silver.process().join_all([profile], closed) == 1
    assert silver.membership("u9").place == Place("2026-W50", 0, 1)
    assert silver.membership("u9").outcome is None
    assert silver.process().close_due(closed, FOREVER)["failed"] == 0
    assert silver.membership("u0").outcome == Outcome("2026-W49", "silver", 1, 100, Zone.UP, 9, 1)


def test_who_hides_and_is_back_before_the_closing_is_ranked(silver: LeagueTown) -> None:
    closed = CLOSED_W48 + WEEK
    hide(silver, "u9", closed - 60 * MINUTE, closed - 20 * MINUTE)
    silver.process().close_due(closed, FOREVER)
    assert (silver.membership("u9").name, zones(silver)[-1]) == ("bronze", "D")


def test_leaving_the_boards_after_the_closing_changes_nothing(silver: LeagueTown) -> None:
    hide(silver, "u0", CLOSED_W48 + WEEK - 5 * MINUTE)
    silver.process().close_due(CLOSED_W48 + WEEK, FOREVER)
    assert silver.membership("u0").name == "gold"


def test_who_has_left_the_boards_is_shown_no_cohort(silver: LeagueTown) -> None:
    hide(silver, "u9", IN_W49)
    assert silver.process().state("u9", IN_W49 + MINUTE).league is None
    league = silver.process().state("u0", IN_W49 + MINUTE).league
    assert league
    assert "u9" not in {row.user_id for row in league.ranked.standing}


def test_leaving_before_the_first_league(town: LeagueTown) -> None:
    town.process().take_part("ann", IN_W48, takes_part=False)
    town.process().take_part("ann", IN_W48, takes_part=False)
    town.play(W48, {"ann": 5}, IN_W48)
    assert town.rosters() == {}
    assert town.membership("ann").version == 1


# ---- what a user sees


def test_a_user_sees_the_cohort_with_its_zones(town: LeagueTown) -> None:
    town.play(W48, TEN, IN_W48)
    state = town.process().state("u4", IN_W48)
    assert state.league
    assert state.league.closes_at == datetime.fromisoformat("2026-11-30T18:00:00+00:00")
    rows = state.league.ranked.standing
    assert [row.rank for row in rows] == list(range(1, 11))
    assert "".join(row.zone.value[0].upper() for row in rows) == "UUUSSSSSSS"


def test_who_has_just_joined_is_in_the_cohort_that_is_shown(town: LeagueTown) -> None:
    town.play(W48, {"u1": 10, "u2": 20}, IN_W48)
    process = town.process()
    assert process.state("u1", IN_W48).league
    town.play(W48, {"u3": 30}, IN_W48)
    league = process.state("u3", IN_W48).league
    assert league
    assert [row.user_id for row in league.ranked.standing] == ["u3", "u2", "u1"]


def test_the_answer_promises_what_the_closing_keeps(town: LeagueTown) -> None:
    town.play(W48, CROWD, IN_W48)
    shown: dict[str, Any] = {}
    for user in CROWD:
        state = town.process().state(user, CLOSED_W48 - 11 * MINUTE)
        assert state.league
        shown |= {row.user_id: (row.rank, row.points, row.zone) for row in state.league.ranked.standing}
    town.process().close_due(CLOSED_W48, FOREVER)
    kept = {user: town.membership(user).outcome for user in CROWD}
    assert {user: (each.rank, each.points, each.zone) for user, each in kept.items() if each} == shown


def test_the_outcome_is_seen_before_the_job_has_written_it(town: LeagueTown) -> None:
    town.play(W48, TEN, IN_W48)
    profile = player("u9", {W48: 91, W49: 2})
    town.put([profile])
    town.process().join_all([profile], CLOSED_W48)  # closes the cohort, and gives no other an outcome
    assert town.membership("u0").outcome is None
    state = town.process().state("u0", CLOSED_W48)
    assert state.league is None
    assert state.membership.name == "silver"
    assert state.membership.outcome == Outcome("2026-W48", "bronze", 1, 100, Zone.UP, 10, 1)


def test_a_user_who_is_not_there_sees_nothing(town: LeagueTown) -> None:
    state = town.process().state("ann", IN_W48)
    assert (state.league, state.membership.outcome, state.rules) == (None, None, RULES)


def test_a_damaged_membership_begins_anew(town: LeagueTown) -> None:
    town.play(W48, {"ann": 5}, IN_W48)
    for item in town.stored()["DailyActivity"]:
        town.dynamodb.put_item(
            TableName=town.table("DailyActivity"), Item=item | {"league": {"S": "damaged"}}
        )
    town.play(W48, {"ann": 5}, IN_W48)
    assert town.membership("ann").name == "bronze"


def test_without_leagues_nothing_is_read(town: LeagueTown) -> None:
    town.terms = ()
    unreachable = Dying(town.dynamodb, 1, "dies before")
    process = town.process(unreachable)
    assert process.join_all([player("ann", {W48: 5})], IN_W48) == 0
    assert process.close_due(CLOSED_W48, FOREVER) == Counter()


def test_too_many_full_cohorts_are_an_error_that_is_logged(
    town: LeagueTown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leagues_module, "ATTEMPTS_MAX", 2)
    process = town.process()
    monkeypatch.setattr(process.store, "enter", lambda *_: False)
    with pytest.raises(Unprocessed, match="had room"):
        process._enter("ann", W48, 0, RULES)
    assert process.join_all([Profile("ann"), player("bob", {W48: 1})], IN_W48) == 0


# ---- erasure


def erase(town: LeagueTown, user: str) -> None:
    eraser = BoardEraser(town.dynamodb, town.table("Boards"))
    person = Person("", user)
    eraser.remove(eraser.find(person))
    assert eraser.find(person) == []
    key = encode_item({"user_id": kept_partition(user), "activity_date": LEAGUE})
    town.dynamodb.delete_item(TableName=town.table("DailyActivity"), Key=key)


def is_named(town: LeagueTown, user: str) -> bool:
    boards = scan_all(town.dynamodb, TableName=town.table("Boards"))
    packed = [zlib.decompress(item["result"]["B"]) for item in boards if "result" in item]
    return user in str(town.stored()) + str(packed)


def test_an_open_cohort_forgets_a_user(town: LeagueTown) -> None:
    town.play(W48, TEN, IN_W48)
    erase(town, "u3")
    assert not is_named(town, "u3")
    assert len(town.rosters()[BRONZE_1]) == 9
    town.process().close_due(CLOSED_W48, FOREVER)
    assert zones(town, [user for user in TEN if user != "u3"]) == "UUUSSSSSS"  # 3 of 9, rounded up


def test_a_cohort_that_is_closed_and_not_finished_keeps_a_row_without_a_name(town: LeagueTown) -> None:
    town.play(W48, TEN, IN_W48)
    profile = player("u9", {W48: 91, W49: 2})
    town.put([profile])
    town.process().join_all([profile], CLOSED_W48)
    erase(town, "u3")
    assert not is_named(town, "u3")
    cohort = town.process().store.cohort(BRONZE_1)
    assert cohort and cohort.standing
    assert [row.user_id for row in cohort.standing[:5]] == ["u0", "u1", "u2", "", "u4"]
    town.process().close_due(CLOSED_W48, FOREVER)
    assert zones(town, [user for user in TEN if user != "u3"]) == "UUUSSSSSS"
    assert town.membership("u3").version == 0


def test_nobody_is_ranked_without_a_profile(town: LeagueTown) -> None:
    """An erasure deletes it before the place: meanwhile its owner is not the last one of the cohort."""
    town.play(W48, TEN, IN_W48)
    town.dynamodb.delete_item(TableName=town.table("UserStreaks"), Key={"user_id": {"S": "u3"}})
    town.process().close_due(CLOSED_W48, FOREVER)
    assert zones(town) == "UUU-SSSSSS"


def test_a_name_that_a_dead_process_has_left_is_erased_too(town: LeagueTown) -> None:
    assert town.process().store.enter(BRONZE_1, "ann", RULES.size, CLOSED_W48)
    erase(town, "ann")
    assert not is_named(town, "ann")


def test_a_region_without_the_cohorts_keeps_the_divisions(town: LeagueTown) -> None:
    """A standby has users' places, and no table of cohorts: the open week is lost, and nothing else."""
    town.play(W48, TEN, IN_W48)
    town.process().close_due(CLOSED_W48, FOREVER)
    town.play(W49, TEN, IN_W49)
    for item in town.stored()["Boards"]:
        key = {name: item[name] for name in ("board", "part")}
        town.dynamodb.delete_item(TableName=town.table("Boards"), Key=key)
    state = town.process().state("u0", IN_W49)
    assert (state.league, state.membership.name) == (None, "silver")
    town.play(W50, TEN, IN_W50)
    assert [town.membership(user).name for user in TEN] == [*["silver"] * 3, *["bronze"] * 7]
    assert town.membership("u0").place == Place("2026-W50", 1, 1)
