"""Browsers on the real page and API."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from processors import ranks
from tests.browser.given import BOOK_DAYS, a_book, publish
from tests.integration.conftest import engine, lone_redis_url
from tests.support.api_stack import stack
from tests.support.engine import Engine
from tests.support.gateway import CONTEXT, token
from tests.support.page_server import serving
from tests.support.pipeline import Pipeline
from tests.support.template import ROOT

__all__ = ["engine", "lone_redis_url"]
# SHOTS=1 has tests take pictures of what they open, for people; to take them is a tenth of the tests' CPU.
SHOTS = ROOT / ".local" / "screenshots" if os.environ.get("SHOTS") else None
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 375, "height": 812}
GROUPS = {"admin": "streakline/admin", "agent": "streakline/agents"}
TIMEOUT_MILLISECONDS = 30_000  # a loaded machine is no failure


@pytest.fixture(scope="module")
def site(browser: Any, engine: Engine, lone_redis_url: str) -> Iterator[str]:
    """The page's address, with the API and the pipeline behind it. Without a browser nothing is started."""
    with stack(engine, lone_redis_url), Pipeline(engine).running(), serving() as url:
        ranks._parts.cache_clear()
        ranks.handler({}, CONTEXT)  # as the schedule does
        publish(a_book(), days_ago=BOOK_DAYS)
        yield url


class Visit:
    """A person's browser. `problems`: what its console said, and requests that went elsewhere."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.url, self.problems, self.sizes = url, list[str](), dict[str, int]()
        options = {"viewport": WIDE, "locale": "en-GB", "timezone_id": "Europe/Berlin", **options}
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(TIMEOUT_MILLISECONDS)
        self.page = self.context.new_page()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.problems.append(f"raised: {error}"))
        self.page.on("request", self._asked)
        self.page.on("dialog", self._interrupted)

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type}: {message.text}")

    def _interrupted(self, dialog: Any) -> None:
        self.problems.append("a dialog")
        dialog.dismiss()

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(self.url):
            self.problems.append(f"asked {request.url}")

    def sign_in(self, user: str, *roles: str, at: str = "you") -> Any:
        """Open the page by a link with a token; returns the page, as it opens at a view."""
        self.page.goto(f"{self.url}#token={token(user, *(GROUPS[role] for role in roles))}")
        self.view("you")
        if at != "you":
            self.page.goto("about:blank")  # another fragment alone would not load the page anew
            self.page.goto(f"{self.url}#/{at}")
            self.view(at)
        return self.page

    def view(self, name: str) -> Any:
        """Wait until a view is complete."""
        self.page.wait_for_selector(f"section.view.{name}:not([aria-busy]) h1")
        return self.page

    def go(self, name: str) -> Any:
        self.page.click(f'#nav a[href="#/{name}"]')
        return self.view(name)

    def shoot(self, name: str) -> None:
        shoot(self.page, name)


def shoot(page: Any, name: str) -> None:
    """Take a picture of a page, if pictures are wanted."""
    if SHOTS:
        page.screenshot(path=SHOTS / f"{name}.png", full_page=True, animations="disabled")


@pytest.fixture
def visit(browser: Any, site: str) -> Iterator[Any]:
    """Opens browsers; at the end none of them may have complained."""
    opened: list[Visit] = []

    def make(url: str = site, **options: Any) -> Visit:
        opened.append(Visit(browser, url, **options))
        return opened[-1]

    yield make
    for each in opened:
        each.context.close()
    assert [problem for each in opened for problem in each.problems] == []
