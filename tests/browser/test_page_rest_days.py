"""Rest days as the page shows them, and a secret achievement as it does not, in a real browser.

The book has had both from the beginning: a new version would change no date that has begun.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from adapters import book_store
from adapters.engagement import daily_terms_store
from processors import ranks
from rules.book.book import Version
from rules.book.daily import WEEKDAYS, daily_rules
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
DAY = timedelta(days=1)
MOON = "\u263e"
HOARD: dict[str, Any] = {
    "all": [{"count": "LESSON_COMPLETED", "at_least": 3}],
    "history": True,
    "secret": True,
    "title": "A hidden hoard",
    "description": "You found the hoard.",
    "image_url": "data:image/svg+xml,%3Csvg%20xmlns='http://www.w3.org/2000/svg'%20viewBox='0%200%209%209'%3E"
    "%3Ctitle%3Ehoard%3C/title%3E%3C/svg%3E",
}


@pytest.fixture(scope="module")
def site(browser: Any, engine: Engine, lone_redis_url: str) -> Iterator[str]:
    """The page's address, with a book whose rest days are yesterday's weekday and that of the day before."""
    today = datetime.now(UTC).date()
    rest = [WEEKDAYS[(today - number * DAY).weekday()] for number in (1, 2)]
    document = a_book() | {"daily": {"rest_days": rest}}
    document["achievements"]["hoard"] = HOARD
    version = Version(1, EPOCH, lambda: read_book(document))
    with pytest.MonkeyPatch.context() as patch, no_published_book(engine):
        patch.setattr(book_store, "shipped_document", lambda: document)
        patch.setattr(book_store, "shipped_version", lambda: version)
        patch.setattr(daily_terms_store, "SHIPPED", daily_rules(document["daily"]))
        forget()
        with stack(engine, lone_redis_url), Pipeline(engine).running(), serving() as url:
            ranks._parts.cache_clear()
            ranks.handler({}, CONTEXT)
            yield url
    forget()


def test_rest_days_have_signs_and_words_in_the_week_and_in_the_calendar(visit: Any) -> None:
    user = f"rester-{uuid4().hex[:8]}"
    before = datetime.now(UTC) - 3 * DAY
    earn(user, 1, before.isoformat())
    profile = call(user, "GET", f"/v1/users/{user}")
    assert (profile["current_streak"], profile["streak_status"]) == (1, "at_risk")
    person = visit()
    page = person.sign_in(user)
    today = datetime.fromisoformat(profile["as_of"]).date()
    for number, (sign, words, style) in enumerate(
        ((None, "no activity", "off"), (MOON, "a rest day", "off rest"), (MOON, "a rest day", "off rest"))
    ):
        button = page.locator(f'button[data-date="{today - number * DAY}"]')
        assert button.get_attribute("class") == style
        assert words in button.text_content()
        assert (button.locator("i").count() == 1) == bool(sign)
        assert sign is None or sign in button.locator("i").text_content()
    person.go("calendar")
    for number in (1, 2):
        cell = page.locator(f'streakline-calendar td[data-key="{today - number * DAY}"]')
        cell.wait_for()
        assert cell.get_attribute("data-state") == "rest_day"
        assert cell.get_attribute("aria-label").endswith(", a rest day")
        assert MOON in cell.locator("i").get_attribute("data-sign")
    active = page.locator(f'streakline-calendar td[data-key="{today - 3 * DAY}"]')
    assert active.get_attribute("data-state") == "active"


def test_a_secret_is_nowhere_on_the_page_until_somebody_has_it(visit: Any) -> None:
    user = f"seeker-{uuid4().hex[:8]}"
    earn(user, 2)
    person = visit(reduced_motion="reduce")
    answers = list[str]()
    person.page.on("response", lambda answer: answers.append(_text(answer)))
    page = person.sign_in(user)
    seen = [page.content()]
    for view in ("calendar", "achievements", "rewards"):
        person.go(view)
        seen.append(page.content())
    assert len(seen) > 3
    assert "And 1 secret one." in " ".join(seen)
    assert not [text for text in (*seen, *answers) if "hoard" in text.lower()]
    assert len(answers) > 10
    person.go("you")
    earn(user, 1)
    page.reload()
    page.locator(".news").wait_for()
    assert "New achievement: A hidden hoard" in page.locator(".news").text_content()
    assert page.locator('.news img.badge[src*="hoard"]').count() == 1
    person.go("achievements")
    earned = page.get_by_role("region", name="Earned")
    assert "A hidden hoard" in earned.text_content()
    picture = earned.locator('img.badge[src*="hoard"]')
    assert (picture.count(), picture.get_attribute("alt")) == (1, ""), "the words beside it say it"


def _text(answer: Any) -> str:
    """What the browser was sent, if it was text."""
    kind = answer.headers.get("content-type", "")
    return str(answer.text()) if answer.ok and ("json" in kind or "html" in kind) else json.dumps(answer.url)
