"""Boards of the book, friends and leagues as the page shows them, in a real browser.

The book has had all of them from the beginning, so this week has them. It is always Wednesday noon: on Mondays
nobody joins a league until the last week's has closed.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from adapters import book_store, clock
from adapters.engagement import daily_terms_store
from processors import ranks
from rules.book.book import Version
from rules.book.daily import daily_rules
from rules.book.document import read_book
from rules.days import EPOCH
from tests.browser.given import a_book, call, earn, no_published_book, set_aside
from tests.browser.test_page import violations
from tests.support.api_stack import stack
from tests.support.engine import Engine
from tests.support.gateway import CONTEXT
from tests.support.memory import forget
from tests.support.page_server import serving
from tests.support.pipeline import Pipeline

pytestmark = pytest.mark.xdist_group("browser")
BOARDS = {"weekly": {"per": "week"}}
LEAGUES = {"board": "weekly", "divisions": ["bronze", "silver"], "size": 10, "up": 3, "down": 3}
REFUSED = '{"error": {"code": "conflict", "message": "not today"}}'
REFUSED_IN_CONSOLE = "the server responded with a status of"


def of_this_week(now: datetime) -> datetime:
    """Wednesday noon of a week: after the last week's league has closed, and before this one's closes."""
    noon = now.replace(hour=12, minute=0, second=0, microsecond=0)
    return noon + timedelta(days=2 - now.weekday())


@pytest.fixture(scope="module")
def site(browser: Any, engine: Engine, lone_redis_url: str) -> Iterator[str]:
    document = a_book() | {"boards": BOARDS, "leagues": LEAGUES}
    version = Version(1, EPOCH, lambda: read_book(document))
    begun = datetime.now(UTC)
    moved = of_this_week(begun) - begun
    # Other tests have made snapshots later than this Wednesday.
    no_snapshot = set_aside(engine, "Boards", "board", "part")
    with pytest.MonkeyPatch.context() as patch, no_published_book(engine), no_snapshot:
        patch.setattr(clock, "now", lambda: datetime.now(UTC) + moved)
        patch.setattr(book_store, "shipped_document", lambda: document)
        patch.setattr(book_store, "shipped_version", lambda: version)
        patch.setattr(daily_terms_store, "SHIPPED", daily_rules(None, BOARDS, LEAGUES))
        forget()
        with stack(engine, lone_redis_url), Pipeline(engine).running(), serving() as url:
            snapshot()
            yield url
    forget()


def snapshot() -> None:
    ranks._parts.cache_clear()
    ranks.handler({}, CONTEXT)


def people(*names: str) -> list[str]:
    return [f"{name}-{uuid4().hex[:8]}" for name in names]


def learn(user: str, lessons: int) -> None:
    earn(user, lessons, clock.now().isoformat())


def shown(user: str) -> Any:
    return call(user, "GET", f"/v1/users/{user}/league")


def refuse(page: Any, path: str, method: str) -> None:
    """Let the service refuse one kind of call, until unroute_all."""

    def answer(route: Any) -> None:
        if route.request.method == method:
            route.fulfill(status=409, body=REFUSED, content_type="application/json")
        else:
            route.continue_()

    page.route(path, answer)


def expect_refusals(person: Any) -> None:
    """Take the browser's own words about refused calls off what it may not say."""
    person.problems[:] = [each for each in person.problems if REFUSED_IN_CONSOLE not in each]


def test_a_person_leaves_the_boards_by_keyboard_and_comes_back(visit: Any) -> None:
    ann, bob = people("ann", "bob")
    for user, lessons in ((ann, 3), (bob, 2)):
        learn(user, lessons)
    snapshot()
    person = visit(reduced_motion="reduce", bypass_csp=True)
    page = person.sign_in(ann, at="boards")
    board = page.locator("streakline-leaderboard[board=weekly]")
    board.get_by_text("(you)").first.wait_for()
    assert violations(page) == []
    leave, back = (page.get_by_role("button", name=name) for name in ("Leave the boards", "Come back"))
    refuse(page, "**/v1/users/*/boards", "PUT")
    leave.press("Enter")
    page.get_by_role("alert").get_by_text("not today").wait_for()
    assert call(ann, "GET", f"/v1/users/{ann}/boards")["hidden"] is False
    page.unroute_all()
    leave.press("Enter")
    page.get_by_text("You have left the boards: nobody sees you there.").wait_for()
    page.wait_for_function("document.activeElement.textContent === 'Come back'")
    assert call(ann, "GET", f"/v1/users/{ann}/boards")["hidden"] is True
    assert violations(page) == []
    page.keyboard.press("Enter")
    leave.wait_for()
    page.wait_for_function("document.activeElement.textContent === 'Leave the boards'")
    assert back.count() == 0
    expect_refusals(person)  # whoever has left has no rank


def test_a_board_that_does_not_answer_hides_no_other(visit: Any) -> None:
    (ann,) = people("ann")
    learn(ann, 1)
    snapshot()
    person = visit(reduced_motion="reduce")
    page = person.sign_in(ann)
    refuse(page, "**/v1/boards**", "GET")
    refuse(page, "**/v1/users/*/league", "GET")
    page.goto(page.url.partition("#")[0] + "#/boards")
    person.view("boards")
    page.get_by_role("alert").first.wait_for()
    assert page.get_by_role("alert").all_text_contents() == ["not today"] * 2
    page.locator("streakline-leaderboard[board=points]").get_by_text("Points").first.wait_for()
    expect_refusals(person)


def test_two_become_friends_by_keyboard_and_part(visit: Any) -> None:
    ann, bob = people("ann", "bob")
    for user in (ann, bob):
        learn(user, 1)
    person = visit(reduced_motion="reduce", bypass_csp=True)
    page = person.sign_in(ann)
    page.route("**/v1/users/*/friends", lambda route: (page.wait_for_timeout(500), route.continue_()))
    page.click('#nav a[href="#/friends"]')
    page.get_by_text("Loading ...").wait_for()
    person.view("friends")
    page.unroute_all()
    page.get_by_text("You have no friends here yet.").wait_for()
    assert violations(page) == []
    field = page.get_by_label("Ask somebody, by user id")
    field.fill(ann)
    field.press("Enter")
    page.get_by_role("alert").get_by_text("is the user's own id").wait_for()
    expect_refusals(person)
    field.fill(bob)
    field.press("Enter")
    page.get_by_text("Your request waits for an answer.").wait_for()
    assert violations(page) == []
    call(bob, "PUT", f"/v1/users/{bob}/friends/{ann}")
    other = visit(reduced_motion="reduce")
    page = other.sign_in(bob, at="friends")
    row = page.get_by_role("row", name=ann)
    assert [cell.strip() for cell in row.locator("td").all_text_contents()][:2] == [
        "1 day",
        "Both were active.",
    ]
    page.get_by_role("button", name=f"End: {ann}").press("Enter")
    page.get_by_role("button", name="Yes, end it").press("Enter")
    page.get_by_text("You are no longer friends.").wait_for()
    page.wait_for_function("document.activeElement !== document.body")
    assert call(ann, "GET", f"/v1/users/{ann}/friends")["friends"] == []


def test_a_person_sees_who_goes_up_and_may_leave(visit: Any) -> None:
    ann, bob, cid = people("ann", "bob", "cid")
    person = visit(reduced_motion="reduce", bypass_csp=True)
    page = person.sign_in(ann, at="boards")
    page.get_by_text("You are in no league this week.").wait_for()
    for user, lessons in ((ann, 3), (bob, 2), (cid, 1)):
        learn(user, lessons)
    page.reload()
    person.view("boards")
    card = page.locator(".card.league")
    card.locator("table").wait_for()
    assert card.locator("h2").text_content() == "League: bronze"
    assert violations(page) == []
    rows = [
        [cell.strip() for cell in row.locator("th, td").all_text_contents()]
        for row in card.locator("tbody tr").all()
    ]
    mine = next(row for row in rows if row[1].endswith("(you)"))
    assert mine[2:] == ["30", "▲ goes up"]
    refuse(page, "**/v1/users/*/league", "PUT")
    card.get_by_role("button", name="Leave the leagues").press("Enter")
    page.get_by_role("button", name="Yes, leave").press("Enter")
    card.get_by_role("alert").get_by_text("not today").wait_for()
    page.unroute_all()
    expect_refusals(person)
    card.get_by_role("button", name="Leave the leagues").press("Enter")
    page.get_by_role("button", name="Yes, leave").press("Enter")
    card.get_by_text("You have left the leagues.").wait_for()
    assert shown(ann)["taking_part"] is False
    page.wait_for_function("document.activeElement.textContent === 'Take part again'")
    page.keyboard.press("Enter")
    card.locator("table").wait_for()
