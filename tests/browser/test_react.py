"""`streakline/react` in Chromium, in an app that a bundler has built, with the real API: also in strict mode and after a server."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.browser.conftest import Visit
from tests.browser.given import call
from tests.support.gateway import token
from tests.support.node_tools import must, packages

pytestmark = pytest.mark.xdist_group("browser")
PAGE = "app.html"
# What a page's code adds to the window, to the document and to other pages, and has not taken away again.
HELD = """
globalThis.held = { listeners: 0, channels: 0 };
for (const target of [window, document]) {
  const [add, remove] = [target.addEventListener.bind(target), target.removeEventListener.bind(target)];
  target.addEventListener = (...given) => (held.listeners++, add(...given));
  target.removeEventListener = (...given) => (held.listeners--, remove(...given));
}
const [open, close] = [BroadcastChannel, BroadcastChannel.prototype.close];
globalThis.BroadcastChannel = class extends open { constructor(name) { super(name); held.channels++; } };
BroadcastChannel.prototype.close = function () { held.channels--; close.call(this); };
"""


@cache
def bundle(entry: str, *more: str) -> str:
    """A file of client/typescript with all that it imports, as React's development build, which warns of mistakes."""
    development = "--define:process.env.NODE_ENV='development'"
    return must(
        str(packages() / "esbuild"),
        entry,
        "--bundle",
        "--target=es2022",
        development.replace("'", '"'),
        *more,
    )


class Phone:
    """A visit to a page of the app, on the API's own origin."""

    def __init__(self, visit: Visit, site: str, user: str, entry: str, inside: str = "") -> None:
        self.user, self.session = user, {"url": site.rstrip("/"), "user": user, "token": token(user)}
        self.asked: list[tuple[str, str]] = []
        self.page, self.problems = visit.page, visit.problems
        self.page.add_init_script(HELD)
        self.page.on(
            "request",
            lambda request: self.asked.append(
                (request.method, urlsplit(request.url).path.partition("$default")[2])
            ),
        )
        text = (
            f'<!doctype html><title>App</title><link rel="icon" href="data:,">'
            f'<script type="application/json" id="session">{json.dumps(self.session)}</script>'
            f'<div id="app">{inside}</div><script type="module">{bundle(entry, "--format=esm")}</script>'
        )
        visit.context.route(
            f"**/{PAGE}", lambda route: route.fulfill(body=text, content_type="text/html; charset=utf-8")
        )
        # A board counts from a period that begins after its book: here none has begun.
        board = json.dumps({"board": "weekly", "state": "open", "entries": []})
        visit.context.route(
            "**/v1/boards/weekly?limit=3",
            lambda route: route.fulfill(body=board, content_type="application/json"),
        )
        self.page.goto(site + PAGE)

    def events(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = call(self.user, "GET", f"/v1/users/{self.user}/events?limit=500")[
            "events"
        ]
        return found

    def shows(self, selector: str, text: str) -> None:
        self.page.locator(selector, has_text=text).first.wait_for()

    def asked_for(self, path: str) -> int:
        return sum(found.startswith(path) for method, found in self.asked if method == "GET")

    def run(self, script: str, given: Any = None) -> Any:
        return self.page.evaluate(script, given)


@pytest.fixture
def open_app(visit: Any, site: str) -> Callable[..., Phone]:
    return lambda user, entry="harness/react.tsx", inside="": Phone(visit(site), site, user, entry, inside)


def test_the_sample_app_shows_what_a_click_has_done_once(open_app: Any) -> None:
    phone = open_app("react-ann", "sample/react/browser.tsx")
    phone.shows("#streak", "0 days, 0 points")
    phone.page.click("#done")
    phone.shows("#streak", "1 day, 10 points")
    phone.page.click("#done")
    phone.shows("#streak", "1 day, 20 points")
    phone.page.wait_for_selector("#board[aria-busy=false]", state="attached")
    assert len(phone.events()) == 2
    assert phone.asked_for("/v1/leaderboards/points") == 1, "strict mode asks once, too"


def test_what_happens_offline_shows_at_once_and_is_there_after_a_reload(open_app: Any) -> None:
    phone = open_app("react-bob", "sample/react/browser.tsx")
    phone.shows("#streak", "0 days, 0 points")
    phone.page.context.set_offline(True)
    phone.page.click("#done")
    phone.shows("#streak", "1 day, 0 points so far")
    phone.page.context.set_offline(False)
    phone.shows("#streak", "1 day, 10 points")
    assert len(phone.events()) == 1


def test_rendering_follows_what_is_shown_and_nothing_else(open_app: Any) -> None:
    phone = open_app("react-cy")
    phone.run("(session) => mount(session)", phone.session)
    phone.shows("output", "react-cy: 0, 0, 0")
    phone.shows("b", "one board, open 0")
    phone.page.wait_for_function(
        "() => renders.board >= 6"
    )  # without answers, and with each: twice, in strict mode
    assert phone.asked.count(("GET", "/v1/users/react-cy")) == 1, "two components show one profile"
    before = phone.run("() => ({...renders})")
    for _ in range(3):
        phone.run("() => refresh()")
    assert phone.run("() => ({...renders})") == before, "the same answer again is nothing new"
    keys = phone.run(
        "() => Promise.all(Array.from({length: 12}, (_, n) => happens('LESSON_COMPLETED', {n})))"
    )
    assert len(set(keys)) == 12
    phone.shows("output", "react-cy: 1, 120, 0")
    after = phone.run("() => ({...renders})")
    assert after["track"] == before["track"], "who only tracks shows no profile"
    assert after["board"] == before["board"]
    # Twelve events wait, one more each time, and are applied: twice in strict mode, in two components.
    assert after["profile"] - before["profile"] <= 4 * (12 + 4)
    assert len(phone.events()) == 12


def test_what_has_no_hook_of_its_own_is_asked_once_and_a_refusal_is_an_error(open_app: Any) -> None:
    phone = open_app("react-bea")
    phone.run("(session) => mount(session, true)", phone.session)
    phone.shows("u", "true, 404, 0")
    (said,) = phone.problems  # the browser's own words
    assert "404" in said
    phone.problems.clear()
    assert phone.asked_for("/v1/users/react-bea/achievements") == 1
    assert phone.asked_for("/v1/users/react-bea/league") == 1


def test_unmounting_leaves_nothing_behind(open_app: Any) -> None:
    phone = open_app("react-di")

    def cycle() -> dict[str, int]:
        phone.run("(session) => mount(session)", phone.session)
        phone.shows("output", "react-di: ")
        during = phone.run("() => ({...held})")
        assert during["channels"] == 1, "strict mode has closed its first client"
        phone.run("() => unmount()")
        left: dict[str, int] = phone.run("() => ({...held})")
        assert during["listeners"] > left["listeners"]
        return left

    first = cycle()  # React itself keeps a listener for ever
    assert [cycle(), cycle()] == [first, first]
    assert first["channels"] == 0


def test_another_user_sees_nothing_of_the_one_before(open_app: Any) -> None:
    phone = open_app("react-ed")
    phone.run("(session) => mount(session)", phone.session)
    phone.shows("output", "react-ed: 0")
    other = {**phone.session, "user": "react-flo", "token": token("react-flo")}
    phone.run("(session) => mount(session)", other)
    phone.shows("output", "react-flo: 0")
    assert "another user" not in phone.run("() => renders")
    key = phone.run("() => happens('LESSON_COMPLETED')")
    phone.shows("output", "react-flo: 1, 10, 0")
    phone.user = "react-flo"
    assert [event["idempotency_key"] for event in phone.events()] == [key]


def test_a_client_of_the_app_s_own(open_app: Any) -> None:
    phone = open_app("react-gus")
    phone.run("() => mountOwn(null)")
    phone.shows("output", "loading")
    assert "nobody is signed in" in phone.run("() => happens('LESSON_COMPLETED')")
    phone.run("(session) => mountOwn(session)", phone.session)
    phone.shows("output", "react-gus: 0")
    phone.run("() => happens('LESSON_COMPLETED')")
    phone.shows("output", "react-gus: 1, 10, 0")
    phone.run("() => unmount()")
    phone.run("() => happens('LESSON_COMPLETED')")
    until = phone.page.wait_for_timeout
    for _ in range(100):
        if len(phone.events()) == 2:
            break
        until(100)
    assert len(phone.events()) == 2, "the app closes its client, and not the provider"


@pytest.fixture
def rendered(tmp_path: Path, site: str) -> Callable[[str], str]:
    """What a server of the app renders for a user."""
    script = tmp_path / "server.cjs"
    script.write_text(bundle("sample/react/server.tsx", "--platform=node", "--format=cjs"), encoding="utf-8")

    def render(user: str) -> str:
        session = json.dumps({"url": site.rstrip("/"), "user": user, "token": token(user)})
        return must("node", "-e", f"process.stdout.write(require({json.dumps(str(script))}).html({session}))")

    return render


def test_a_server_renders_the_loading_state_and_the_browser_takes_over_without_a_warning(
    open_app: Any, rendered: Callable[[str], str]
) -> None:
    html = rendered("react-ida")
    assert "Loading your streak" in html
    assert 'aria-busy="true"' in html
    phone = open_app("react-ida", "sample/react/browser.tsx", html)
    phone.shows("#streak", "0 days, 0 points")
    phone.page.click("#done")
    phone.shows("#streak", "1 day, 10 points")
    assert len(phone.events()) == 1
