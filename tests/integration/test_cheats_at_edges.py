"""Attacks on boards, leagues and friends where dates end: who gains nothing by zones, weeks, leap days and versions."""

import copy
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from adapters.book_store import shipped_document
from processors import ranks
from tests.support.books import most
from tests.support.moved_site import KEYS, event, published, send
from tests.support.site import Site

DAY, HOUR, SECOND = timedelta(days=1), timedelta(hours=1), timedelta(seconds=1)
WEST, EAST = "-12:00", "+14:00"


def document(boards: dict[str, Any], leagues: bool = False) -> dict[str, Any]:
    made: dict[str, Any] = copy.deepcopy(shipped_document()) | {"boards": boards}
    if leagues:
        rules = {"board": "weekly", "divisions": ["bronze", "silver"], "size": 5, "up": 2, "down": 2}
        made["leagues"] = rules
    return made


@pytest.fixture
def fresh(api: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    for module in ("daily_terms_store", "boards", "period_boards"):
        monkeypatch.setattr(f"adapters.engagement.{module}.FRESH_SECONDS", 0)
    yield monkeypatch
    # The next test's clock may be behind: no snapshot or result of this one is newer than its own.
    dynamodb = api.engine.client("dynamodb")
    for each in dynamodb.scan(TableName="Boards")["Items"]:
        dynamodb.delete_item(TableName="Boards", Key={name: each[name] for name in ("board", "part")})


def new(*people: str) -> list[str]:
    number = next(KEYS)
    return [f"{person}-e{number}" for person in people]


def there(occurred: datetime, zone: str) -> dict[str, Any]:
    """A lesson, in a zone."""
    return event("LESSON_COMPLETED", occurred) | {"timezone": zone}


def score(api: Site, user: str, period: str, board: str = "weekly") -> int:
    status, told = api.call(user, "GET", f"/v1/boards/{board}/users/{user}?period={period}")
    assert status == 200, told
    found: int = told["score"]
    return found


def build(now: datetime) -> Any:
    return ranks._parts().build(now)


def pair(api: Site, one: str, other: str) -> None:
    for user, friend in ((one, other), (other, one)):
        assert api.call(user, "PUT", f"/v1/users/{user}/friends/{friend}")[0] == 200


def streak(api: Site, user: str) -> Any:
    (shown,) = api.call(user, "GET", f"/v1/users/{user}/friends")[1]["friends"]
    return shown["streak"]


def test_two_who_cover_each_other_s_misses_have_no_streak(api: Site, fresh: pytest.MonkeyPatch) -> None:
    """They take turns, and each has all freezes that one may hold: each one's cover only that one's misses."""
    begin = datetime(2026, 3, 2, 12, tzinfo=UTC)
    ann, bob = new("ann", "bob")
    with published(api, document({}), datetime(2026, 2, 1, tzinfo=UTC), fresh) as move:
        move(begin)
        pair(api, ann, bob)
        for user in (ann, bob):
            send(api, user, event("CHECK_IN", begin))
            for _ in range(5):
                body = {"idempotency_key": f"f{next(KEYS)}", "granted_on": str(begin.date())}
                api.admin("POST", f"/v1/users/{user}/freezes", body)
        for number in range(1, 9):
            move(begin + number * DAY)
            send(api, (ann, bob)[number % 2], event("CHECK_IN", begin + number * DAY))
        assert streak(api, ann) == 1, "eight dates on which one of both was active: none counts for the pair"
        for number in range(9, 13):
            move(begin + number * DAY)
            send(api, ann, event("CHECK_IN", begin + number * DAY))
        assert streak(api, ann) == streak(api, bob) == 0, "bob's freezes are used up, and ann's do not help"
        assert api.profile(ann)["current_streak"] > 0


def test_who_claims_to_be_in_two_zones_counts_no_date_of_the_pair_twice(
    api: Site, fresh: pytest.MonkeyPatch
) -> None:
    """Both say of one evening that it is two dates."""
    at = datetime(2026, 3, 2, 10, 30, tzinfo=UTC)
    ann, bob = new("ann", "bob")
    with published(api, document({}), datetime(2026, 2, 1, tzinfo=UTC), fresh) as move:
        move(at)
        pair(api, ann, bob)
        for user in (ann, bob):
            send(api, user, there(at, WEST), there(at + SECOND, EAST), there(at + 2 * SECOND, "+00:00"))
        move(at + 2 * DAY)
        dates = api.profile(ann)["active_days"]
        assert streak(api, ann) <= dates <= 2


@pytest.mark.parametrize(
    ("zone", "ends"),
    # Sunday 15 March ends in UTC+14 at 10:00 of its own UTC date, and in UTC-12 on Monday at 12:00.
    [(EAST, datetime(2026, 3, 15, 10, tzinfo=UTC)), (WEST, datetime(2026, 3, 16, 12, tzinfo=UTC))],
)
def test_the_last_second_of_a_week_and_the_first_of_the_next_at_both_ends_of_earth(
    api: Site, fresh: pytest.MonkeyPatch, zone: str, ends: datetime
) -> None:
    last, first = new("last", "first")
    with published(
        api, document({"weekly": {"per": "week"}}, leagues=True), datetime(2026, 3, 1, tzinfo=UTC), fresh
    ) as move:
        move(ends + 5 * SECOND)
        send(api, last, there(ends - SECOND, zone))
        send(api, first, there(ends, zone))
        move(datetime(2026, 3, 16, 12, 30, tzinfo=UTC))
        build(datetime(2026, 3, 16, 12, 30, tzinfo=UTC))
        assert [score(api, user, "2026-W11") > 0 for user in (last, first)] == [True, False]
        assert [score(api, user, "2026-W12") > 0 for user in (last, first)] == [False, True]
        told = api.call(last, "GET", f"/v1/users/{last}/league")[1]
        assert told["league"]["week"] == "2026-W11"
        assert api.call(first, "GET", f"/v1/users/{first}/league")[1]["league"] is None


def test_a_journey_over_the_week_s_end_counts_no_day_twice(api: Site, fresh: pytest.MonkeyPatch) -> None:
    """A Sunday in the east, and the same hours in the west: the caps of one date hold, and both weeks add up."""
    sunday = datetime(2026, 3, 15, 9, tzinfo=UTC)  # Sunday 23:00 in UTC+14
    (liar,) = new("liar")
    with published(
        api, document({"weekly": {"per": "week"}}), datetime(2026, 3, 1, tzinfo=UTC), fresh
    ) as move:
        move(sunday)
        send(api, liar, *(there(sunday - number * SECOND, EAST) for number in range(8)))
        move(sunday + 2 * HOUR)  # Monday in the east, Saturday in the west
        for zone in (EAST, WEST, "+00:00"):
            send(api, liar, *(there(sunday + HOUR + number * SECOND, zone) for number in range(8)))
        build(sunday + 2 * HOUR)
        week, following = (score(api, liar, name) for name in ("2026-W11", "2026-W12"))
        profile = api.profile(liar)
        assert week + following == profile["total_bestie_points"]
        dates = api.admin("GET", f"/v1/users/{liar}/activity")[1]["activity"]
        assert all(row["points_earned"] <= most("LESSON_COMPLETED") for row in dates)
        assert len(dates) <= 2, "one instant has no three dates"


def test_week_53_is_one_period_over_two_years(api: Site, fresh: pytest.MonkeyPatch) -> None:
    (ann,) = new("ann")
    boards = {"weekly": {"per": "week"}, "monthly": {"per": "month"}}
    with published(api, document(boards, leagues=True), datetime(2026, 11, 15, tzinfo=UTC), fresh) as move:
        for day in (date(2026, 12, 31), date(2027, 1, 1), date(2027, 1, 3), date(2027, 1, 4)):
            at = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
            move(at)
            send(api, ann, event("LESSON_COMPLETED", at))
        build(datetime(2027, 1, 4, 12, 30, tzinfo=UTC))
        found = [score(api, ann, name) for name in ("2026-W53", "2027-W01")]
        assert found[0] == 3 * found[1] > 0
        months = [score(api, ann, name, "monthly") for name in ("2026-12", "2027-01")]
        assert months[1] == 3 * months[0] > 0
        assert api.call(ann, "GET", "/v1/boards/weekly?period=2027-W53")[0] == 400
        closed = datetime(2027, 1, 4, 18, 10, tzinfo=UTC)
        move(closed)
        leagues = ranks._parts().leagues
        assert leagues
        leagues.close_due(closed, float("inf"))
        send(api, ann, event("LESSON_COMPLETED", closed))
        league = api.call(ann, "GET", f"/v1/users/{ann}/league")[1]
        assert (league["last"]["week"], league["league"]["week"]) == ("2026-W53", "2027-W01")


def test_the_29th_of_february_is_in_its_month_and_ends_it(api: Site, fresh: pytest.MonkeyPatch) -> None:
    (ann,) = new("ann")
    leap = datetime(2028, 2, 29, 12, tzinfo=UTC)
    with published(
        api, document({"monthly": {"per": "month"}}), datetime(2028, 1, 1, tzinfo=UTC), fresh
    ) as move:
        move(leap)
        send(api, ann, event("LESSON_COMPLETED", leap))
        late = datetime(2028, 3, 1, 11, 59, 59, tzinfo=UTC)  # still the 29th in UTC-12
        move(late + SECOND)
        send(api, ann, there(late, WEST), there(late + SECOND, WEST))
        build(late + 5 * SECOND)
        february, march = (score(api, ann, name, "monthly") for name in ("2028-02", "2028-03"))
        assert february == 2 * march > 0
        told = api.call(ann, "GET", "/v1/boards/monthly?period=2028-02")[1]
        assert (told["last"], told["ends_at"]) == ("2028-02-29", "2028-03-01T12:00:00.000000Z")


def test_no_version_changes_a_period_that_has_begun(api: Site, fresh: pytest.MonkeyPatch) -> None:
    """A board that is declared in mid-week begins on Monday; one that is dropped in mid-week goes on to its end."""
    wednesday = datetime(2026, 3, 11, 12, tzinfo=UTC)
    (ann,) = new("ann")
    before, after = {"old": {"per": "week"}}, {"new": {"per": "week"}}
    with published(api, document(before), datetime(2026, 3, 1, tzinfo=UTC), fresh) as move:
        move(wednesday - DAY)
        send(api, ann, event("LESSON_COMPLETED", wednesday - DAY))
        move(wednesday)
        # Its author says that it has been in force since Monday.
        body = {"book": document(after), "effective": "2026-03-09T00:00:00+00:00"}
        status, told = api.admin("POST", "/v1/rules", body)
        if status != 201:  # a version may not take effect in the past
            body["effective"] = (wednesday + SECOND).isoformat()
            status, told = api.admin("POST", "/v1/rules", body)
        assert status == 201, told
        move(wednesday + HOUR)
        send(api, ann, event("LESSON_COMPLETED", wednesday + HOUR))
        build(wednesday + HOUR)
        points = api.profile(ann)["total_bestie_points"]
        assert score(api, ann, "2026-W11", "old") == points > 0
        assert api.call(ann, "GET", f"/v1/boards/new/users/{ann}?period=2026-W11")[0] == 404
        monday = datetime(2026, 3, 17, 12, tzinfo=UTC)
        move(monday)
        send(api, ann, event("LESSON_COMPLETED", monday))
        build(monday)
        assert score(api, ann, "2026-W12", "new") > 0
        assert api.call(ann, "GET", f"/v1/boards/old/users/{ann}?period=2026-W12")[0] == 404
        assert score(api, ann, "2026-W11", "old") == points, "what is declared no more ends as it began"
