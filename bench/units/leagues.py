"""Measures leagues: joining one, an event afterwards, reading a cohort, and its closing."""

from datetime import timedelta

from adapters.book_store import shipped_document
from bench.counting.desk import Desk, PathCosts
from bench.counting.requests import ADMIN, http
from bench.units.boards import tick_to_thursday
from bench.units.engagement import DAY, USER_ID, apply_events, cost_of_request

MEMBERS = 30
SECTIONS = {
    "boards": {"weekly": {"per": "week"}},
    "leagues": {"board": "weekly", "divisions": ["bronze", "silver"], "size": MEMBERS, "up": 7, "down": 7},
}


def league_paths(desk: Desk) -> PathCosts:
    """Yield, under a book with leagues: the event that joins, the next one, a read, a closing of a cohort.

    The closing comes with a snapshot of the boards.
    """
    body = {"book": shipped_document() | SECTIONS, "effective": "now"}
    answer = desk.call("RulesApiFunction", http("POST", "/v1/rules", body, groups=ADMIN))
    assert answer["statusCode"] == 201, answer
    tick_to_thursday(desk)
    users = [USER_ID.format(number) for number in range(MEMBERS)]
    for user in users[:-1]:
        apply_events(desk, user, 1)
    desk.start_path()
    apply_events(desk, users[-1], 1)
    yield "league.event.joining", desk.take_costs()
    desk.tick(timedelta(hours=1))
    desk.start_path()
    apply_events(desk, users[-1], 1)
    yield "league.event.again", desk.take_costs()
    yield "league.read", cost_of_request(desk, users[0], f"/v1/users/{users[0]}/league")
    desk.tick(4 * DAY)
    desk.call("RanksFunction", {})  # takes lapsed streaks out of their index, which is no cost of leagues
    desk.tick(timedelta(hours=5))
    desk.start_path()
    answer = desk.call("RanksFunction", {})
    assert answer["finished"] == 1, answer
    yield f"league.closing.{MEMBERS}", desk.take_costs()
