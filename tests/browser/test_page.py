"""The page itself: small, accessible, fitting any width, private; signing in and out."""

import time
from functools import cache
from importlib import resources
from typing import Any

import pytest

from ingest import page as page_function
from ingest.page import PageSettings
from tests.browser.conftest import PHONE, TIMEOUT_MILLISECONDS, WIDE
from tests.browser.given import earn
from tests.browser.test_rounds import post_question
from tests.support.authority import Authority, authority
from tests.support.effort import effort
from tests.support.gateway import token

pytestmark = pytest.mark.xdist_group("browser")
FIRST_VIEW_BYTES_MAX = 100_000
VIEWS = (
    "you",
    "rewards",
    "achievements",
    "calendar",
    "boards",
    "friends",
    "answer",
    "ask",
    "book",
    "operations",
)
SERIOUS = ("serious", "critical")


@cache
def axe() -> str:
    """The accessibility engine's script; it comes with a package of the lock file."""
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text()


# axe leaves this rule out, as it is new there.
SEEN_IN_NAME = "label-content-name-mismatch"


def all_violations(page: Any, *more: str) -> list[Any]:
    """What axe finds on a page that has come to rest: a view that still fades in has less contrast than it will have.

    more: rules of axe that it does not look at by itself.
    """
    page.evaluate("() => Promise.allSettled(document.getAnimations().map((each) => each.finished))")
    page.evaluate(axe())
    rules = {each: {"enabled": True} for each in more}
    run = "async (rules) => (await axe.run({ resultTypes: ['violations'], rules })).violations"
    return list(page.evaluate(run, rules))


def violations(page: Any, *more: str) -> list[str]:
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in all_violations(page, *more)
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]


@pytest.mark.parametrize(
    ("viewport", "scheme"),
    [(PHONE, "dark"), (WIDE, "light")][: effort(1, soak=2)],
)
def test_no_serious_violation_of_accessibility(visit: Any, viewport: Any, scheme: str) -> None:
    post_question("What did you notice first on this page?", category="research")
    post_question("Which would you rather have?", type="multiple_choice", options=["More time", "More room"])
    guest = visit(viewport=viewport, color_scheme=scheme, bypass_csp=True)
    guest.page.goto(guest.url)
    guest.page.wait_for_selector("h1")
    name = f"{viewport['width']}-{scheme}"
    guest.shoot(f"welcome-{name}")
    assert violations(guest.page) == []
    earn("root", 3)
    person = visit(viewport=viewport, color_scheme=scheme, bypass_csp=True)
    page = person.sign_in("root", "admin")
    for view in VIEWS:
        person.go(view)
        if view == "you":
            page.locator(".days button").last.click()
            page.locator(".told p").first.wait_for()
        person.shoot(f"{view}-{name}")
        assert violations(page, SEEN_IN_NAME) == [], view
    page.evaluate("document.querySelector('h1').after(document.createElement('img'))")
    assert any(each.startswith("image-alt") for each in violations(page)), "a planted one is found"


def test_every_view_fits_320_pixels(visit: Any) -> None:
    post_question("A word that does not break: " + "x" * 200)
    earn("root", 3)
    person = visit(viewport={"width": 320, "height": 700})
    page = person.sign_in("root", "admin")
    for view in VIEWS:
        person.go(view)
        wide = page.evaluate(
            """() => [...document.querySelectorAll('body *')].filter((e) => !e.closest('.scroll, nav, .unseen')
            && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map((e) => e.outerHTML.slice(0, 90))"""
        )
        assert wide == [], view
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view


def test_the_first_view_is_small_and_the_second_asks_for_next_to_nothing(visit: Any) -> None:
    person = visit()
    sizes: dict[str, float] = {}
    urls: dict[str, str] = {}
    session = person.context.new_cdp_session(person.page)
    session.send("Network.enable")
    session.on("Network.requestWillBeSent", lambda e: urls.__setitem__(e["requestId"], e["request"]["url"]))
    session.on("Network.loadingFinished", lambda e: sizes.__setitem__(e["requestId"], e["encodedDataLength"]))
    person.sign_in("reader")
    person.page.wait_for_load_state("networkidle")
    first = sum(sizes.values())
    print(f"first view: {first:.0f} bytes in {len(sizes)} requests")
    assert 0 < first < FIRST_VIEW_BYTES_MAX
    sizes.clear()
    urls.clear()
    person.page.reload()
    person.view("you")
    person.page.wait_for_load_state("networkidle")
    scripts = [sizes[key] for key, url in urls.items() if "?v=" in url and key in sizes]
    assert sum(scripts) == 0, "what carries a version is kept"


def test_a_view_that_waits_for_the_service_says_so(visit: Any) -> None:
    opened = visit()
    page = opened.sign_in("page-slow")
    page.route("**/v1/leaderboards/**", lambda route: (page.wait_for_timeout(1500), route.continue_()))
    page.route("**/v1/users/*/rewards*", lambda route: (page.wait_for_timeout(1500), route.continue_()))
    page.route("**/v1/rewards*", lambda route: (page.wait_for_timeout(1500), route.continue_()))
    page.click('#nav a[href="#/rewards"]')
    page.get_by_text("Loading ...").wait_for()
    opened.view("rewards")
    assert page.get_by_text("Loading ...").count() == 0


def test_on_a_phone_the_explanation_of_a_day_comes_into_sight(visit: Any) -> None:
    page = visit(viewport={"width": 375, "height": 500}).sign_in("page-explained")
    page.locator(".days button").first.click(position={"x": 5, "y": 5})
    page.locator(".told p").first.wait_for()
    page.wait_for_function(
        "() => { const box = document.querySelector('.told').getBoundingClientRect(); return box.bottom <= innerHeight + 1; }"
    )


def test_the_token_leaves_the_address_and_goes_when_signed_out(visit: Any) -> None:
    person = visit()
    page = person.sign_in("ada")
    assert page.url == person.url
    assert "token" not in page.evaluate("history.state + location.href")
    page.reload()
    person.view("you")
    page.get_by_role("button", name="Sign out").press("Enter")
    page.wait_for_selector(".welcome")
    assert page.evaluate("sessionStorage.length") == 0
    page.goto(f"{person.url}#/you")
    page.reload()
    page.wait_for_selector(".welcome")


def test_a_token_past_its_time_or_refused_leads_to_the_sign_in(visit: Any) -> None:
    person = visit()
    page = person.page
    refused = "e30.eyJzdWIiOiJhZGEifQ."  # {"sub": "ada"}: the page reads it, the service says no
    for bad in (token("ada", lifetime_seconds=-1), "no.token", "<script>", refused):
        page.goto("about:blank")
        page.goto(f"{person.url}#token={bad}")
        page.wait_for_selector(".welcome .trouble")
        assert "sign-in link is not valid" in page.locator(".welcome").text_content()
        page.reload()
        page.wait_for_selector(".welcome")
        assert not page.locator(".welcome .trouble").count(), "it is said of the link, and not of the page"
    person.sign_in("ada")
    page.evaluate("sessionStorage.setItem('streakline.token', 'e30.' + btoa('{\"sub\":\"ada\"}') + '.')")
    page.click('#nav a[href="#/you"]')
    page.wait_for_selector(".welcome .trouble")
    assert "sign-in has ended" in page.locator(".welcome").text_content()
    assert {each.partition(": ")[0] for each in person.problems} <= {"error", "asked about"}
    person.problems.clear()


def test_people_sign_in_by_code_with_pkce(visit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with authority() as issuer:
        config = PageSettings(issuer, "app1", "")
        site = page_function.build_site(page_function.FOLDER, config)
        monkeypatch.setattr(page_function, "_parts", lambda: site)
        person = visit()
        page = person.page
        page.goto(person.url)
        page.get_by_role("button", name="Sign in").press("Enter")
        person.view("you")
        assert page.url == person.url, "neither code nor state stays in the address"
        assert all(each.startswith(f"asked {issuer}") for each in person.problems)
        person.problems.clear()
        page.evaluate("sessionStorage.clear()")
        page.goto(f"{person.url}?code=code9&state=forged")
        page.wait_for_selector(".welcome")
        assert person.problems == [], "a state that this tab did not send is not even exchanged"


def test_where_people_sign_in_a_link_signs_nobody_in_and_signing_out_ends_the_session(
    visit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with authority() as issuer:
        config = PageSettings(issuer, "app1", "")
        site = page_function.build_site(page_function.FOLDER, config)
        monkeypatch.setattr(page_function, "_parts", lambda: site)
        person = visit()
        page = person.page
        page.goto(f"{person.url}#token={token('mallory')}")
        page.wait_for_selector(".welcome")
        assert "token" not in page.evaluate("location.href")
        assert page.evaluate("sessionStorage.length") == 0
        page.get_by_role("button", name="Sign in").press("Enter")
        person.view("you")
        page.evaluate(f"location.hash = '#token={token('mallory')}'")
        person.view("you")
        assert "oidc-user" in page.evaluate("atob(sessionStorage['streakline.token'].split('.')[1])")
        Authority.ended.clear()
        page.get_by_role("button", name="Sign out").press("Enter")
        # The page is left and comes back: it may not have been left yet.
        until = time.monotonic() + TIMEOUT_MILLISECONDS / 1000
        while not Authority.ended and time.monotonic() < until:
            page.wait_for_timeout(50)
        page.wait_for_url(person.url)
        page.wait_for_selector(".welcome")
        assert [(each["client_id"], each["id_token_hint"]) for each in Authority.ended] == [
            ("app1", "an-id-token")
        ]
        assert page.evaluate("sessionStorage.length") == 0
        assert all(each.startswith(f"asked {issuer}") for each in person.problems)
        person.problems.clear()


@pytest.mark.parametrize("stored", [False, True])
def test_an_answer_is_sent_again_when_the_service_is_busy(visit: Any, stored: bool) -> None:
    """503 comes once; whether or not the first try was stored after all, the person is thanked."""
    post_question("Still there?")
    person = visit()
    page = person.sign_in(f"busy-{stored}", at="answer")
    tried: list[str] = []

    def busy(route: Any) -> None:
        if route.request.method == "POST" and not tried:
            tried.append(route.request.url)
            if stored:
                route.fetch()
            route.fulfill(status=503, body='{"error": {"code": "unavailable", "message": "try again"}}')
        else:
            route.continue_()

    page.route("**/responses", busy)
    card = page.locator(".question", has_text="Still there?").first
    card.locator("textarea").fill("yes")
    card.get_by_label("4 of 5").check()
    card.get_by_role("button", name="Send answer").press("Enter")
    page.wait_for_selector(".question.done .given")
    assert len(tried) == 1
    assert not page.locator(".question.done .trouble").count()
    person.problems.clear()  # the browser tells of each 503


def test_motion_is_reduced_and_focus_is_seen(visit: Any) -> None:
    person = visit(reduced_motion="reduce")
    page = person.sign_in("ada")
    assert page.evaluate("getComputedStyle(document.querySelector('.view')).animationName") == "none"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
