"""The whole round in a real browser: ask, answer by keyboard alone, see points, streak, boards, the pipeline."""

import json
import re
from typing import Any
from uuid import uuid4

import pytest

from adapters.platform.redis import Redis
from ingest.engagement import user_services
from processors import ranks
from tests.browser.conftest import PHONE
from tests.support.gateway import CONTEXT, GROUP_AGENTS, ask, token

pytestmark = pytest.mark.xdist_group("browser")
SCRIPT = '<img src=x onerror="alert(1)"><script>alert(2)</script>'


def post_question(prompt: str, **more: Any) -> str:
    """An agent's question, by the API."""
    body = {
        "idempotency_key": str(uuid4()),
        "type": "text",
        "prompt": prompt,
        "required_responses": 3,
        **more,
    }
    headers = {"authorization": f"Bearer {token('agent-api', GROUP_AGENTS)}"}
    answered = ask("POST", "/v1/questions", headers, json.dumps(body).encode())
    assert answered.status == 201, answered.body
    return str(json.loads(answered.body)["question_id"])


def focus(page: Any) -> str:
    """What has the keyboard, in words."""
    return str(
        page.evaluate(
            """() => { const e = document.activeElement;
            return [e.tagName, e.id || e.name || '', e.value || e.textContent].join('|').trim(); }"""
        )
    )


def back_to(page: Any, wanted: str) -> None:
    for _ in range(40):
        page.keyboard.press("Shift+Tab")
        if focus(page) == wanted:
            return
    raise AssertionError(f"the keyboard never came to {wanted!r}; it is at {focus(page)!r}")


def test_the_whole_round(visit: Any, lone_redis_url: str) -> None:
    prompt = f"Which name is clearer? {uuid4().hex[:6]}"
    agent = visit()
    asking = agent.sign_in("agent-ui", "agent")
    agent.go("ask")
    asking.get_by_label("Question", exact=True).fill(prompt)
    asking.get_by_label("Options").fill("retry_after\nwait_seconds")
    asking.get_by_label("Answers wanted").fill("2")
    asking.get_by_role("button", name="Ask", exact=True).click()
    asking.wait_for_selector(".watched .about:has-text('0 of 2 answers')")

    person = visit()
    page = person.sign_in(f"keyboard-{uuid4().hex[:6]}", at="answer")
    assert page.locator("#figure-streak").text_content() == "0 days"
    card = page.locator("article.question", has_text=prompt)
    # From here on nothing but the keyboard.
    page.keyboard.press("Tab")
    for _ in range(40):  # a browser under load may begin at the heading, and not at the top
        if "Skip to the content" in focus(page):
            break
        page.keyboard.press("Shift+Tab")
    assert "Skip to the content" in focus(page)
    page.keyboard.press("Enter")
    assert focus(page).startswith("H1")
    for _ in range(40):
        page.keyboard.press("Tab")
        if card.evaluate("(card) => card.contains(document.activeElement)"):
            break
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    assert card.get_by_label("wait_seconds").is_checked()
    page.keyboard.press("Tab")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert card.get_by_label("4 of 5").is_checked()
    page.keyboard.press("Tab")
    assert "Send answer" in focus(page)
    page.keyboard.press("Enter")
    card.locator(".gained").wait_for()
    assert "+10 points. Your streak is 1 day." in card.text_content()
    assert focus(page).startswith("H2"), "the keyboard stays at the question"
    page.locator("#figure-streak", has_text=re.compile("^1 day$")).wait_for()
    page.locator("#figure-points", has_text=re.compile("^10$")).wait_for()
    page.locator("#status", has_text="+10 points").wait_for(state="attached")
    person.shoot("answered-1280")

    back_to(page, "A||You")
    page.keyboard.press("Enter")
    person.view("you")
    assert focus(page) == "H1||You"
    text = page.locator("section.view").text_content()
    streak = page.locator("section.view streakline-streak [part=root]").text_content()
    assert streak == "1 day in a rowToday counts already."
    for shown in ("First answer", "Question answered", "+10"):
        assert shown in text, shown
    page.locator(".days button").last.press("Enter")
    page.locator(".told p").first.wait_for()
    assert "counts: a date with at least one event counts, once" in page.locator(".told").text_content()
    person.shoot("you-answered-1280")

    asking.wait_for_selector(".watched .about:has-text('1 of 2 answers')")
    assert "wait_seconds1" in asking.locator(".bars").text_content()

    redis = Redis(lone_redis_url)
    for key in redis.call("KEYS", "leaderboard:*"):  # as a minute does
        redis.call("DEL", key)
    ranks.handler({}, CONTEXT)
    user_services.services.cache_clear()  # it has read the snapshot of before
    person.go("boards")
    assert "(you)" in page.get_by_role("table", name="Answers").text_content()
    feet = page.locator(
        "streakline-leaderboard [part=footer]"
    )  # a board lists ten, and other tests' people earn more
    assert all("You are number " in text for text in feet.all_text_contents()[:2])  # of streaks and of points
    names = page.locator("streakline-leaderboard [part=name]")
    assert max(names.evaluate_all("(all) => all.map((each) => each.offsetHeight)")) < 30, "each has one line"
    assert "Answers are kept apart from accounts" in page.locator(".boards").text_content()
    person.shoot("boards-answered-1280")

    watching = visit(viewport=PHONE)
    operator = watching.sign_in("root", "admin")
    operator.click('#nav a[href="#/operations"]')
    operator.wait_for_selector(".operations table")
    shown = operator.locator(".operations").text_content()
    assert "engagement" in shown
    assert "keeping up" in shown
    assert "nothing waits" in shown
    watching.shoot("operations-live-375")
    agent.shoot("ask-answered-1280")
    assert float(operator.locator(".operations .tile dd").first.text_content()) > 0


def test_a_stored_script_is_only_text(visit: Any) -> None:
    post_question(f"{SCRIPT} Why?", category="scripts")
    post_question(
        f"Which? {SCRIPT}", type="multiple_choice", options=[SCRIPT, "</label><script>alert(3)</script>"]
    )
    person = visit()
    page = person.sign_in("eve", at="answer")
    card = page.locator("article.question", has_text="Why?").first
    assert card.locator("h2").text_content().startswith(SCRIPT)
    card.get_by_label("Your answer").fill(SCRIPT)
    card.get_by_label("5 of 5").check(force=True)
    card.get_by_role("button", name="Send answer").click()
    page.locator(".given", has_text="alert(2)").wait_for()
    assert page.locator("main img, main script").count() == 0
    agent = visit()
    asking = agent.sign_in("agent-api", "agent")
    agent.go("ask")
    asking.get_by_role("button", name="Why?").first.click()
    asking.locator(".texts li", has_text="alert(2)").wait_for()
    assert asking.locator("main img, main script").count() == 0


def test_a_question_sent_again_after_its_answer_was_lost_is_asked_once(visit: Any) -> None:
    prompt = f"Asked once? {uuid4().hex[:6]}"
    agent = visit()
    page = agent.sign_in("agent-lost", "agent")
    agent.go("ask")
    page.get_by_label("Question", exact=True).fill(prompt)
    page.get_by_label("a text").check(force=True)
    lost: list[int] = []

    def lose(route: Any) -> None:
        if route.request.method == "POST" and len(lost) < 4:  # as often as the page asks by itself
            lost.append(route.fetch().status)
            route.abort()
        else:
            route.continue_()

    page.route("**/v1/questions", lose)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator("form .trouble").wait_for(timeout=15_000)
    assert lost == [201, 200, 200, 200]
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_selector(".watched .about")
    page.locator(".asked li", has_text=prompt).first.wait_for()
    assert page.locator(".asked li", has_text=prompt).count() == 1
    agent.problems.clear()  # the browser itself notes what was lost


def test_an_address_that_names_no_view_shows_the_first(visit: Any) -> None:
    person = visit()
    page = person.sign_in("lost")
    for name in ("constructor", "toString", "__proto__", "nowhere"):
        page.goto(f"{person.url}#/{name}")
        page.reload()
        person.view("you")
        assert page.title() == "You - Streakline"


def test_a_question_that_closed_meanwhile_says_so(visit: Any) -> None:
    prompt = f"Gone soon {uuid4().hex[:6]}"
    question = post_question(prompt, required_responses=1)
    person = visit()
    page = person.sign_in("late", at="answer")
    body = json.dumps({"answer": "first", "confidence": 1}).encode()
    path = f"/v1/questions/{question}/responses"
    assert ask("POST", path, {"authorization": f"Bearer {token('early')}"}, body).status == 201
    card = page.locator("article.question", has_text=prompt)
    card.get_by_label("Your answer").fill("second")
    card.get_by_label("1 of 5").check(force=True)
    card.get_by_role("button", name="Send answer").click()
    card.get_by_role("alert").filter(has_text="has all the answers").wait_for()
    assert len(person.problems) == 1, "the browser itself notes the 409"
    person.problems.clear()


def test_a_minute_without_events_is_told_in_words_and_each_column_of_the_queues_fits(visit: Any) -> None:
    operator = visit(viewport={"width": 320, "height": 700})

    def quiet(route: Any) -> None:
        told = (answered := route.fetch()).json()
        told["throughput"]["per_second"] = [0] * 60
        route.fulfill(response=answered, json=told)

    operator.page.route("**/v1/operations", quiet)
    page = operator.sign_in("root", "admin", at="operations")
    assert "No events in the last minute." in page.locator(".chart").text_content()
    assert not page.locator(".spark").count()
    queues = page.get_by_role("region", name="Queues")
    assert queues.evaluate("(box) => box.scrollWidth <= box.clientWidth")
    page.unroute_all(behavior="ignoreErrors")  # the page asks each few seconds, also while the test ends


def test_operators_can_pause_and_others_cannot_look(visit: Any) -> None:
    operator = visit()
    operator.page.clock.install()
    page = operator.sign_in("root", "admin")
    operator.go("operations")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with page.expect_response("**/v1/operations"):
        page.clock.fast_forward(3100)
    page.get_by_role("button", name="Pause").press("Enter")
    asked.clear()
    page.clock.fast_forward(3100)
    page.clock.fast_forward(3100)
    page.wait_for_timeout(100)
    assert asked == []
    assert "paused" in page.locator("#as-of").text_content()
    page.get_by_role("button", name="Go on").press("Enter")
    with page.expect_response("**/v1/operations"):
        page.clock.fast_forward(3100)
    person = visit()
    plain = person.sign_in("nobody")
    assert not plain.locator("#nav-operations").is_visible()
    plain.goto(f"{person.url}#/operations")
    person.view("you")


def test_what_is_wrong_with_a_question_stands_at_its_field(visit: Any) -> None:
    agent = visit(viewport=PHONE)
    page = agent.sign_in("agent-wrong", "agent", at="ask")
    ask_button = page.get_by_role("button", name="Ask", exact=True)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.method))
    question, options = page.get_by_label("Question", exact=True), page.get_by_label("Options")
    ask_button.press("Enter")
    assert "prompt" in focus(page), "the keyboard is where the first fault is"
    assert question.get_attribute("aria-describedby") == "prompt-problem"
    assert page.locator("#prompt-problem").text_content() == "Write a question of up to 1,000 characters."
    question.fill("Which?")
    for wrong in ("", "one", "one\none", "\n".join(map(str, range(11)))):
        options.fill(wrong)
        ask_button.press("Enter")
        assert page.locator(".trouble").count() == 1
        assert "2 to 10 different options" in page.locator("#options-problem").text_content()
    options.fill("one\ntwo")
    page.get_by_label("Answers wanted").fill("0")
    page.get_by_label("Open for").fill("")
    ask_button.press("Enter")
    assert page.locator(".trouble").count() == 2
    assert "POST" not in asked, "the service is not bothered"
    page.get_by_label("Answers wanted").fill("2")
    page.get_by_label("Open for").fill("1")
    assert not page.locator(".trouble, [aria-invalid]").count(), "what is mended is no longer marked"
    page.get_by_label("Category").fill("ö!")
    agent.shoot("ask-wrong-375")
    ask_button.press("Enter")
    page.locator("#category-problem").wait_for()
    assert "letters, digits and dashes" in page.locator("#category-problem").text_content(), "of the service"
    page.get_by_label("Category").fill("")
    ask_button.press("Enter")
    page.wait_for_selector(".watched .about:has-text('0 of 2 answers')")
    assert (question.input_value(), options.input_value()) == ("", "")
    assert not page.locator(".trouble, [aria-invalid]").count()
    assert page.locator(".asked li").first.text_content().startswith("Which?open · 0 of 2 answers")
    assert len(agent.problems) == 1, "the browser itself notes the 422"
    agent.problems.clear()
