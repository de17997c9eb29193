"""A league as the page shows it, in a real browser. The book has had it from the beginning, so this week has one."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from adapters import book_store
from adapters.engagement import daily_terms_store
from processors import ranks
from rules.book.book import Version
from rules.book.daily import daily_rules
from rules.book.document import read_book
from rules.days import EPOCH
from tests.browser.given import a_book, call, earn, no_published_book
from tests.support.api_stack import stack
from tests.support.engine import Engine
from tests.support.gateway import CONTEXT
from tests.support.memory import forget
from tests.support.page_server import serving
from tests.support.pipeline import Pipeline

pytestmark = pytest.mark.xdist_group("browser")
BOARDS = {"weekly": {"per": "week"}}
LEAGUES = {"board": "weekly", "divisions": ["bronze", "silver"], "size": 10, "up": 3, "down": 3}


@pytest.fixture(scope="module")
def site(browser: Any, engine: Engine, lone_redis_url: str) -> Iterator[str]:
    document = a_book() | {"boards": BOARDS, "leagues": LEAGUES}
    version = Version(1, EPOCH, lambda: read_book(document))
    with pytest.MonkeyPatch.context() as patch, no_published_book(engine):
        patch.setattr(book_store, "shipped_document", lambda: document)
        patch.setattr(book_store, "shipped_version", lambda: version)
        patch.setattr(daily_terms_store, "SHIPPED", daily_rules(None, BOARDS, LEAGUES))
        forget()
        with stack(engine, lone_redis_url), Pipeline(engine).running(), serving() as url:
            ranks._parts.cache_clear()
            ranks.handler({}, CONTEXT)
            yield url
    forget()


def test_a_person_sees_who_goes_up_and_may_leave(visit: Any) -> None:
    ann, bob, cid = (f"{name}-{uuid4().hex[:8]}" for name in ("ann", "bob", "cid"))
    for user, lessons in ((ann, 3), (bob, 2), (cid, 1)):
        earn(user, lessons)
    if not shown(ann)["league"]:
        pytest.skip("between two leagues: on Mondays nobody joins until the last week's has closed")
    person = visit(reduced_motion="reduce")
    page = person.sign_in(ann)
    page.goto(page.url.partition("#")[0] + "#/boards")
    card = page.locator(".card.league")
    card.locator("table").wait_for()
    assert card.locator("h2").text_content() == "League: bronze"
    rows = [
        [cell.strip() for cell in row.locator("th, td").all_text_contents()]
        for row in card.locator("tbody tr").all()
    ]
    assert [(row[0], row[3]) for row in rows] == [("1", "▲ goes up"), ("2", "stays"), ("3", "stays")]
    assert rows[0][1].endswith("(you)")
    card.get_by_role("button", name="Leave the leagues").click()
    page.get_by_role("button", name="Yes, leave").click()
    card.get_by_text("You have left the leagues.").wait_for()
    assert shown(ann)["taking_part"] is False
    card.get_by_role("button", name="Take part again").click()
    card.locator("table").wait_for()


def shown(user: str) -> Any:
    return call(user, "GET", f"/v1/users/{user}/league")
