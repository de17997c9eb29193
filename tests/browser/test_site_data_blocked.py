"""A browser whose user blocks what sites store: client and element show what the service says, and events are sent."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import TIMEOUT_MILLISECONDS
from tests.browser.given import call, earn
from tests.browser.test_points import press
from tests.support.chromium import FLAGS, NOT_INSTALLED, WHOLE
from tests.support.effort import effort
from tests.support.gateway import token
from tests.support.node_tools import must, packages

pytestmark = pytest.mark.xdist_group("browser")
BLOCK = 2  # Chromium's word for it
ALLOW = 1


@pytest.fixture(
    params=[pytest.param(BLOCK, id="blocked"), pytest.param(ALLOW, id="allowed")][: effort(1, soak=2)]
)
def profile(browser: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Any, bool]]:
    """A browser with settings of its own, and whether sites may store nothing there."""
    if not WHOLE:
        pytest.skip(NOT_INSTALLED)
    preferences = {"profile": {"default_content_setting_values": {"cookies": request.param}}}
    (tmp_path / "Default").mkdir()
    (tmp_path / "Default" / "Preferences").write_text(json.dumps(preferences))
    context = browser.browser_type.launch_persistent_context(
        tmp_path, executable_path=WHOLE, args=list(FLAGS), locale="en-GB", timezone_id="UTC"
    )
    context.set_default_timeout(TIMEOUT_MILLISECONDS)
    yield context, request.param == BLOCK
    context.close()


def test_our_own_page_signs_in_and_shows_the_streak(site: str, profile: tuple[Any, bool]) -> None:
    context, is_blocked = profile
    user = f"guest-{is_blocked}".lower()
    earn(user, 4)
    page, said = context.new_page(), list[str]()
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"raised: {error}"))
    page.goto(f"{site}#token={token(user)}")
    page.wait_for_selector("section.view.you:not([aria-busy]) h1")
    page.click('#nav a[href="#/rewards"]')
    page.wait_for_selector("section.view.rewards:not([aria-busy]) h1")
    press(page, "Sticker")
    page.locator(".gained", has_text="Redeemed: Sticker for 10 points.").wait_for()
    assert call(user, "GET", f"/v1/users/{user}/balance")["balance"] == 30
    assert said == []


def test_the_streak_is_the_service_s_and_what_happens_lands(
    site: str, profile: tuple[Any, bool], request: pytest.FixtureRequest
) -> None:
    context, is_blocked = profile
    user = f"private-{is_blocked}".lower()
    earn(user, 3)
    packages()
    script = must(
        str(packages() / "esbuild"), "harness/shown.ts", "--bundle", "--format=esm", "--target=es2022"
    )
    settings = json.dumps({"url": site, "token": token(user), "user": user})
    html = f"""<!doctype html><script type="application/json" id="settings">{settings}</script>
        <body><script type="module">{script}</script>"""
    context.route(
        "**/app.html", lambda route: route.fulfill(body=html, content_type="text/html; charset=utf-8")
    )
    page, said = context.new_page(), list[str]()
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"raised: {error}"))
    page.goto(f"{site}app.html")
    page.wait_for_function("() => globalThis.me !== undefined")
    refused = page.evaluate("() => refusals()")
    assert refused == (["localStorage", "indexedDB"] if is_blocked else [])
    told = call(user, "GET", f"/v1/users/{user}")
    shown = page.evaluate("() => me.profile()")
    assert {name: shown[name] for name in told} == told
    assert (shown["current_streak"], shown["balance"], shown["is_estimate"]) == (1, 30, False)
    page.evaluate("() => streak.ready")
    assert (
        " ".join(page.locator("streakline-streak [part=root]").inner_text().split())
        == "1 day in a row Today counts already."
    )
    tracked = page.evaluate("() => me.track('LESSON_COMPLETED')")
    page.evaluate("() => me.track('LESSON_COMPLETED')")
    assert (tracked["kept"], page.evaluate("() => me.flush()")) == (not is_blocked, 0)
    stored = call(user, "GET", f"/v1/users/{user}/events?limit=500")["events"]
    assert tracked["key"] in {each["idempotency_key"] for each in stored}
    assert len(stored) == 5
    warnings = [
        "warning: streakline: nothing can be stored here: events wait in memory, and end with the page or the process"
    ]
    assert said == (warnings if is_blocked else [])
