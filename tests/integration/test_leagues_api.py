"""Leagues through the real handlers: events join, the answer shows zones, the schedule closes, users leave."""

import copy
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.book_store import shipped_document
from ingest.engagement.leagues import LEAGUE_VIEW
from ingest.web.validate import first_problem
from processors import ranks
from tests.support.gateway import CONTEXT
from tests.support.moved_site import KEYS, Move, event, published, send
from tests.support.site import Site

DAY = timedelta(days=1)
MONDAY = datetime(2026, 3, 9, 12, tzinfo=UTC)  # the last week's league is still open
TUESDAY = MONDAY + DAY
CLOSED = datetime(2026, 3, 16, 18, 10, tzinfo=UTC)
WEEK = "2026-W11"


@pytest.fixture
def week(api: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Move]:
    document = copy.deepcopy(shipped_document())
    document["boards"] = {"weekly": {"per": "week"}}
    document["leagues"] = {
        "board": "weekly", "divisions": ["bronze", "silver"], "size": 5, "up": 2, "down": 2,
    }  # fmt: skip
    with published(api, document, datetime(2026, 3, 1, tzinfo=UTC), monkeypatch) as move:
        yield move


def league(api: Site, user: str) -> Any:
    status, answer = api.call(user, "GET", f"/v1/users/{user}/league")
    assert status == 200, answer
    assert first_problem(answer, LEAGUE_VIEW) is None
    return answer


def crowd(number: int) -> list[str]:
    return [f"player{next(KEYS)}" for _ in range(number)]


def test_a_week_in_a_league(api: Site, week: Move) -> None:
    ann, bob, cid = crowd(3)
    week(MONDAY)
    send(api, ann, event("LESSON_COMPLETED", MONDAY))
    shown = league(api, ann)
    assert (shown["league"], shown["division"]["name"]) == (None, "bronze"), "the last week's is still open"
    week(TUESDAY)
    for user, events in ((ann, 1), (bob, 2), (cid, 1)):
        send(
            api,
            user,
            *[event("LESSON_COMPLETED", TUESDAY - timedelta(minutes=each)) for each in range(events)],
        )
    shown = league(api, ann)
    assert shown["division"] == {"name": "bronze", "number": 1, "of": 2}
    assert shown["taking_part"] is True
    assert shown["last"] is None
    assert (shown["league"]["week"], shown["league"]["state"]) == (WEEK, "open")
    assert shown["league"]["closes_at"] == "2026-03-16T18:00:00.000000Z"
    rows = [(row["rank"], row["is_me"], row["zone"]) for row in shown["league"]["entries"]]
    assert rows.count((1, True, "up")) == 1  # points since Monday count: ann ties with bob
    assert [row[0] for row in rows] == [1, 1, 3]
    assert not {ann, bob, cid} & {row["alias"] for row in shown["league"]["entries"]}

    week(CLOSED - timedelta(minutes=5))
    assert league(api, ann)["league"]["state"] == "closing"
    week(CLOSED)
    send(api, cid, event("LESSON_COMPLETED", CLOSED))  # who plays on at once closes the cohort
    assert league(api, cid)["last"]["zone"] == "stay"
    assert ranks.handler({}, CONTEXT)["finished"] >= 1
    shown = league(api, ann)
    assert shown["league"] is None
    assert shown["division"]["name"] == "silver"
    assert shown["last"] | {"points": 0} == {
        "week": WEEK, "division": "bronze", "rank": 1, "points": 0, "zone": "up", "members": 3,
    }  # fmt: skip
    send(api, ann, event("LESSON_COMPLETED", CLOSED))
    assert league(api, ann)["league"]["week"] == "2026-W12"


def test_leaving_and_coming_back(api: Site, week: Move) -> None:
    (ann,) = crowd(1)
    week(TUESDAY)
    status, answer = api.call(ann, "PUT", f"/v1/users/{ann}/league", {"taking_part": False})
    assert (status, answer) == (200, {"user_id": ann, "taking_part": False})
    send(api, ann, event("LESSON_COMPLETED", TUESDAY))
    shown = league(api, ann)
    assert (shown["taking_part"], shown["league"]) == (False, None)
    api.call(ann, "PUT", f"/v1/users/{ann}/league", {"taking_part": True})
    send(api, ann, event("LESSON_COMPLETED", TUESDAY))
    assert league(api, ann)["league"]["week"] == WEEK


def test_who_comes_back_later_has_the_last_outcome_and_begins_in_the_lowest(api: Site, week: Move) -> None:
    (ann,) = crowd(1)
    week(TUESDAY)
    send(api, ann, event("LESSON_COMPLETED", TUESDAY))
    week(CLOSED)
    for takes_part in (False, True):  # nobody has closed the cohort
        api.call(ann, "PUT", f"/v1/users/{ann}/league", {"taking_part": takes_part})
    shown = league(api, ann)
    assert shown["last"]["week"] == WEEK
    assert shown["division"]["name"] == "bronze"


def test_nobody_reads_or_changes_another_ones_league(api: Site, week: Move) -> None:
    ann, bob = crowd(2)
    week(TUESDAY)
    send(api, bob, event("LESSON_COMPLETED", TUESDAY))
    for method, body in (("GET", None), ("PUT", {"taking_part": False})):
        status, _ = api.call(ann, method, f"/v1/users/{bob}/league", body)
        assert status == 403


def test_an_account_under_review_is_in_no_cohort(api: Site, week: Move) -> None:
    ann, bob = crowd(2)
    week(TUESDAY)
    for user in (ann, bob):
        send(api, user, event("LESSON_COMPLETED", TUESDAY))
    members = len(league(api, ann)["league"]["entries"])
    for minute, zone in enumerate(("Asia/Tokyo", "Europe/Berlin", "America/New_York", "Asia/Tokyo")):
        week(TUESDAY + timedelta(minutes=minute))
        api.call(bob, "PUT", f"/v1/users/{bob}/timezone", {"timezone": zone})
    week(TUESDAY + timedelta(minutes=5))
    assert api.admin("GET", "/v1/review")[1]["accounts"]
    assert len(league(api, ann)["league"]["entries"]) == members - 1


def test_without_leagues_the_answer_says_so(api: Site) -> None:
    status, answer = api.call("nobody", "GET", "/v1/users/nobody/league")
    assert status == 404
    assert "no leagues" in answer["error"]["message"]


def test_the_last_second_in_the_zone_farthest_west_counts(api: Site, week: Move) -> None:
    """Sunday ends in UTC-12 on Monday at 12:00 UTC. What arrives until 18:00 is in the league, and nothing later."""
    west, later = crowd(2)
    last = datetime(2026, 3, 16, 11, 59, 59, tzinfo=UTC)
    closes = datetime(2026, 3, 16, 18, tzinfo=UTC)
    week(closes - timedelta(seconds=1))
    send(api, west, event("LESSON_COMPLETED", last) | {"timezone": "-12:00"})
    assert league(api, west)["league"]["week"] == WEEK
    week(closes)
    send(api, later, event("LESSON_COMPLETED", last) | {"timezone": "-12:00"})
    assert league(api, later)["league"] is None, "it has closed; the board of the week counts the event"
    assert api.call(later, "GET", "/v1/boards/weekly?period=" + WEEK)[1]["me"]["score"] > 0


def test_a_clock_that_is_wrong_leads_into_no_other_week(api: Site, week: Move) -> None:
    """A phone that is a week ahead or behind gets no points of that week, so it joins no league of it."""
    ahead, behind = crowd(2)
    week(TUESDAY)
    send(api, behind, event("LESSON_COMPLETED", TUESDAY - 2 * DAY))  # on Sunday, of the week before
    assert league(api, behind)["league"] is None
    far = event("LESSON_COMPLETED", TUESDAY + 7 * DAY)
    told = api.call(ahead, "POST", "/v1/events", {"events": [far]})
    api.settle()
    assert told[0] in (200, 202, 422)
    shown = league(api, ahead)["league"]
    assert shown is None or shown["week"] == WEEK
