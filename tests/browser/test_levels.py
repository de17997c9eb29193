"""The level of a person, its progress, and what is new, in a real browser."""

from typing import Any
from uuid import uuid4

import pytest

from tests.browser.given import SCRIPT_TITLE as TEN
from tests.browser.given import earn

pytestmark = pytest.mark.xdist_group("browser")


@pytest.mark.parametrize(("motion", "moves"), [("reduce", False), ("no-preference", True)])
def test_the_level_its_progress_and_what_is_new_are_shown_once(visit: Any, motion: str, moves: bool) -> None:
    """The shipped levels: bronze begins with 100 points."""
    user = f"climber-{uuid4().hex[:8]}"
    earn(user, 9)
    person = visit(reduced_motion=motion)
    page = person.sign_in(user)
    card = page.locator(".card.level")
    assert card.locator(".reached").text_content() == "Starter"
    bar = card.locator("progress")
    assert (bar.get_attribute("value"), bar.get_attribute("max")) == ("90", "100")
    assert "10 points until Bronze." in card.text_content()
    assert page.locator(".news").count() == 0, "nothing is new to a browser that has seen nothing"
    earn(user, 1)
    page.reload()
    news = page.locator(".news")
    news.wait_for()
    assert news.locator("li").all_text_contents() == ["✦New level: Bronze", "✦New achievement: " + TEN]
    assert (news.evaluate("node => getComputedStyle(node).animationName") != "none") is moves
    assert card.locator(".reached").text_content() == "Bronze"
    page.reload()
    card.wait_for()
    assert news.count() == 0
