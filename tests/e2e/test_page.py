"""The web page as the deployed stack serves it: a whole round by keyboard, in a real browser."""

from typing import Any

import pytest

from local import sign_in
from local.api import Api
from local.cloud.tokens import token
from local.stack import Stack
from tests.browser.conftest import Visit
from tests.e2e.test_questions import asked
from tests.support.effort import only_soak

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")
MILLISECONDS = 60_000


@only_soak(
    "test_the_whole_round (tests/browser/test_rounds.py) for the page,"
    " test_the_page_and_the_view_of_the_pipeline_are_served (tests/e2e/test_questions.py) for what the cloud serves of it"
)
def test_a_person_answers_by_keyboard_and_sees_points_streak_and_rank(
    stack: Stack, user: str, browser: Any
) -> None:
    agent = Api(stack, f"agent-{user}", group="streakline/agents")
    prompt = f"Which name is clearer, {user}?"
    question = asked(agent, "k", required_responses=1, prompt=prompt)
    person = Visit(browser, sign_in.page_link(stack, "").partition("#")[0])
    shown = person.page
    shown.goto(sign_in.page_link(stack, token(stack, user)))
    shown.click('#nav a[href="#/answer"]')
    card = shown.locator("article.question", has_text=prompt)
    card.get_by_label("append", exact=True).focus(timeout=MILLISECONDS)
    for key in ("Space", "Tab", "ArrowRight", "Tab", "Enter"):
        shown.keyboard.press(key)
    card.locator(".gained").wait_for(timeout=MILLISECONDS)
    assert shown.locator("#figure-streak").text_content() == "1 day"
    assert shown.locator("#figure-points").text_content() == "10"
    assert agent.get(f"/v1/questions/{question['question_id']}")["status"] == "CLOSED"
    shown.get_by_role("link", name="Boards").press("Enter")
    shown.get_by_text("You are number").first.wait_for(timeout=MILLISECONDS)
    assert person.problems == []
