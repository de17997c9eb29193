"""The web page as the deployed stack serves it: a whole round by keyboard, in a real browser."""

from typing import Any

import pytest

from local import page
from local.replay import Api
from local.stack import Stack
from local.tokens import token
from tests.browser.conftest import Visit, browser
from tests.e2e.test_questions import asked

__all__ = ["browser"]
# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")
SECONDS = 60_000


def test_a_person_answers_by_keyboard_and_sees_points_streak_and_rank(
    stack: Stack, user: str, browser: Any
) -> None:
    agent = Api(stack, f"agent-{user}", group="streakline/agents")
    question = asked(agent, "k", required_responses=1, options=["append", "add"])
    person = Visit(browser, page.link(stack, "").partition("#")[0])
    person.page.goto(page.link(stack, token(stack, user)))
    card = person.page.get_by_role("group", name="Which name is clearer?").first
    card.or_(person.page.get_by_text("Which name is clearer?").first).first.wait_for(timeout=SECONDS)
    form = person.page.locator("form", has=person.page.get_by_text("append")).first
    form.get_by_label("add", exact=True).focus()
    person.page.keyboard.press("Space")
    person.page.keyboard.press("Tab")
    person.page.keyboard.press("Space")
    person.page.keyboard.press("Tab")
    person.page.keyboard.press("Enter")
    person.page.locator("#figure-points", has_text="10").wait_for(timeout=SECONDS)
    assert person.page.locator("#figure-streak").inner_text() == "1 day"
    assert agent.get(f"/v1/questions/{question['question_id']}")["status"] == "CLOSED"
    person.page.get_by_role("link", name="Boards").press("Enter")
    person.page.get_by_text(user[:8]).first.wait_for(timeout=SECONDS)
    assert person.problems == []
