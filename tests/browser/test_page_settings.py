"""What a person sets on the page: freezes, pauses, the time zone, the name on the boards."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.browser.given import call, earn

pytestmark = pytest.mark.xdist_group("browser")


def settings(person: Any, user: str) -> Any:
    card = person.sign_in(user).locator("section.settings")
    card.wait_for()
    return card


def profile(user: str) -> dict[str, Any]:
    found: dict[str, Any] = call(user, "GET", f"/v1/users/{user}")
    return found


@pytest.fixture
def user() -> str:
    name = f"setter-{uuid4().hex[:8]}"
    earn(name, 2)
    return name


def test_a_freeze_is_taken_after_the_person_agreed_to_its_price(visit: Any, user: str) -> None:
    person = visit()
    card = settings(person, user)
    assert "You have 0 freezes of at most 5" in card.inner_text()
    card.get_by_role("button", name="Take a freeze").press("Enter")
    dialog = person.page.locator("dialog[open]")
    assert "2 a month are free. After that each costs 100 points." in dialog.inner_text()
    dialog.get_by_role("button", name="Cancel").press("Enter")
    assert profile(user)["freezes_available"] == 0
    card.get_by_role("button", name="Take a freeze").press("Enter")
    person.page.get_by_role("button", name="Yes, take it").press("Enter")
    words = person.page.locator("section.settings p.gained")
    words.wait_for()
    assert words.inner_text() == "You have a freeze more."
    assert person.page.evaluate("document.activeElement.className") == "gained"
    assert "You have 1 freeze of at most 5" in card.inner_text()
    assert profile(user)["freezes_available"] == 1
    call(user, "POST", f"/v1/users/{user}/freezes", {})  # the last free one
    card.get_by_role("button", name="Take a freeze").press("Enter")
    person.page.get_by_role("button", name="Yes, take it").press("Enter")
    card.locator("p.trouble").wait_for()
    assert card.locator("p.trouble").inner_text() == "You do not have the points for this."
    assert profile(user)["freezes_available"] == 2
    person.problems.clear()  # the browser itself notes each refusal


def test_a_freeze_whose_answer_is_lost_is_taken_once(visit: Any, user: str) -> None:
    person = visit()
    card = settings(person, user)
    lost = iter((True, True, True, True, False))

    def lose(route: Any) -> None:
        route.fetch()
        route.abort() if next(lost, False) else route.fallback()

    person.page.route("**/freezes", lose)
    card.get_by_role("button", name="Take a freeze").press("Enter")
    person.page.get_by_role("button", name="Yes, take it").press("Enter")
    card.locator("p.trouble").wait_for()
    assert "Press again: it happens once." in card.inner_text()
    person.page.unroute("**/freezes")
    card.get_by_role("button", name="Take a freeze").press(
        "Enter"
    )  # it asks nothing: the press before has agreed
    card.locator("p.gained").wait_for()
    assert profile(user)["freezes_available"] == 1
    person.problems.clear()  # the browser itself notes what was lost


def test_a_pause_is_made_and_shown_and_a_wrong_one_is_explained(visit: Any, user: str) -> None:
    person = visit()
    card = settings(person, user)
    today = date.fromisoformat(profile(user)["as_of"])
    first, last = today + timedelta(days=3), today + timedelta(days=5)
    card.get_by_label("From").fill(str(last))
    card.get_by_label("to", exact=True).fill(str(first))
    card.get_by_role("button", name="Pause").press("Enter")
    card.locator("p.trouble", has_text="last is before first").wait_for()
    card.get_by_label("From").fill(str(first))
    card.get_by_label("to", exact=True).fill(str(last))
    card.get_by_role("button", name="Pause").press("Enter")
    card.locator("p.gained").wait_for()
    assert profile(user)["pauses"] == [{"first": str(first), "last": str(last)}]
    assert re.search(r"\w+day,? \d+ \w+ to \w+day,? \d+ \w+", card.locator("ul").inner_text())
    person.problems.clear()  # the browser itself notes each refusal


def test_zone_and_name_are_set_and_the_name_can_be_given_up(visit: Any, user: str) -> None:
    person = visit()
    card = settings(person, user)
    card.get_by_label("Your days are days of").select_option("Pacific/Auckland")
    card.get_by_role("button", name="Set").first.press("Enter")
    card.locator("p.gained").wait_for()
    assert "Pacific/Auckland" in card.locator("p.gained").inner_text()
    assert profile(user)["timezone"] == "Pacific/Auckland"
    name = f"Ann {uuid4().hex[:6]}"
    card.get_by_label("Name").fill(name)
    card.get_by_label("Name").press("Enter")
    card.locator("p.gained", has_text=name).wait_for()
    assert profile(user)["alias"] == name
    card.get_by_role("button", name="Use a made-up name").press("Enter")
    card.locator("p.gained", has_not_text=name).wait_for()
    assert profile(user)["alias"] is None
    assert datetime.now(UTC).date() - date.fromisoformat(profile(user)["as_of"]) <= timedelta(days=1)
