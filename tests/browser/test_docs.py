"""The reference of the API in a browser: accessible, fitting any width, nothing refused by its policy."""

import json
from typing import Any

import pytest

from ingest.page import handler
from tests.browser.conftest import shoot
from tests.browser.test_page import violations
from tests.support.effort import SOAK, effort
from tests.support.gateway import CONTEXT, token
from tests.support.plain_page import plain_page

pytestmark = pytest.mark.xdist_group("browser")
ORIGIN = "http://api.localhost"
HEIGHT_MAX = 16_000  # pixels
# Leaves a call of each section and of each method, and opens it: all come from one template.
FEW_CALLS = """() => {
    const methods = new Set();
    for (const each of document.querySelectorAll("main details")) {
        const method = each.querySelector(".method")?.className;
        if (each.previousElementSibling.matches("details") && methods.has(method)) each.remove();
        else each.open = true;
        methods.add(method);
    }
}"""


@pytest.fixture(autouse=True)
def without_sign_in(monkeypatch: pytest.MonkeyPatch) -> None:
    plain_page(monkeypatch)


def served(route: Any) -> None:
    path = route.request.url.removeprefix(ORIGIN).partition("?")[0]
    file = path.rpartition("/")[2] if "/app/" in path else None
    answered = handler(
        {"rawPath": path, "headers": {}, "pathParameters": {"file": file} if file else None}, CONTEXT
    )
    route.fulfill(status=answered["statusCode"], headers=answered["headers"], body=answered["body"])


@pytest.mark.parametrize(
    ("scheme", "width"),
    [("dark", 320), ("light", 1280)][: effort(1, soak=2)],
)
def test_an_engineer_reads_it(browser: Any, scheme: str, width: int) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    page.route("**/*", served)
    page.goto(f"{ORIGIN}/stage/v1/docs")
    shoot(page, f"docs-{scheme}-{width}")
    assert page.evaluate("document.documentElement.scrollHeight") < HEIGHT_MAX, "calls are folded"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if not SOAK:
        page.evaluate(FEW_CALLS)
    assert violations(page) == []
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.get_by_role("link", name="POST /v1/events", exact=True).press("Enter")
    assert page.evaluate("location.hash") == "#postEvents"
    page.locator("details[open] > summary #postEvents").wait_for()
    shoot(page, f"docs-event-{scheme}-{width}")
    context.close()


def test_the_strict_policy_refuses_nothing_of_it(browser: Any) -> None:
    context = browser.new_context()
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.route("**/*", served)
    page.goto(f"{ORIGIN}/v1/docs")
    assert page.evaluate("getComputedStyle(document.body).display") == "grid", "its style is there"
    assert [each for each in said if "favicon" not in each and "404" not in each] == [], json.dumps(said)
    context.close()


def test_an_engineer_sends_an_event_and_reads_the_answer(visit: Any) -> None:
    """Under the page's own policy, to the API that served it, below its base path."""
    reader = visit()
    page = reader.page
    page.goto(f"{reader.url}v1/docs#postEvents")
    call = page.locator("details[open]:has(#postEvents)")
    page.get_by_label("Token", exact=True).fill(token("ada"))
    call.get_by_role("button", name="Send").click()
    call.locator("output", has_text='"accepted": 1').wait_for()
    shoot(page, "docs-sent")
    page.goto(f"{reader.url}v1/docs#getUsersUserId")
    page.get_by_label("Token", exact=True).fill(token("ada"))
    call = page.locator("details[open]:has(#getUsersUserId)")
    call.get_by_role("button", name="Send").click()
    call.locator("output", has_text='"user_id": "ada"').wait_for()
