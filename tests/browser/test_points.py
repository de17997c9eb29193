"""What points are spent on, told and done in a real browser."""

import json
import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import yaml

from tests.browser.conftest import PHONE
from tests.browser.given import LONG_SECONDS, SCRIPT_TITLE, a_book, call, earn, publish
from tests.browser.test_rounds import focus
from tests.support.gateway import GROUP_ADMIN
from tests.support.site import PRODUCERS

pytestmark = pytest.mark.xdist_group("browser")


def a_person(lessons: int) -> str:
    user = f"buyer-{uuid4().hex[:8]}"
    earn(user, lessons)
    return user


def reward(page: Any, name: str) -> Any:
    return page.locator("article.reward").filter(has=page.get_by_role("heading", name=name, exact=True))


def imported(module: str) -> str:
    """JavaScript that gives a module of the page."""
    return f"await import(document.querySelector('script[src*=main]').src.replace('main.js', '{module}'))"


def balance(user: str) -> dict[str, Any]:
    found: dict[str, Any] = call(user, "GET", f"/v1/users/{user}/balance")
    return found


def press(page: Any, name: str) -> None:
    """Redeem by keyboard: the button, then the first button of what is asked."""
    reward(page, name).get_by_role("button", name="Redeem").press("Enter")
    page.locator("dialog[open]").wait_for()
    page.keyboard.press("Tab")
    assert "Yes, redeem" in focus(page)
    page.keyboard.press("Enter")


def test_a_card_shows_title_description_and_picture_and_all_of_them_as_they_were_written(visit: Any) -> None:
    loads, fails = "https://pictures.example.com/card.svg", "https://pictures.example.com/gone.png"
    user = a_person(1)
    person = visit(viewport=PHONE)
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20"/>'
    headers: dict[str, str] = {}

    def answer(route: Any) -> None:
        headers.update(route.request.headers)
        if route.request.url == loads:
            route.fulfill(content_type="image/svg+xml", body=svg)
        else:
            route.abort()

    def with_pictures(route: Any) -> None:
        told = (answered := route.fetch()).json()
        pictures = {"gift": loads, "sticker": fails}
        rewards = [
            each | ({"image_url": pictures[each["reward"]]} if each["reward"] in pictures else {})
            for each in told["rewards"]
        ]
        route.fulfill(response=answered, json=told | {"rewards": rewards})

    person.context.route("https://pictures.example.com/**", answer)
    person.context.route("**/v1/users/*/rewards?**", with_pictures)
    page = person.sign_in(user)
    person.go("rewards")
    gift = reward(page, SCRIPT_TITLE)
    assert gift.locator(".description").text_content() == "<b>Worth</b> 10.\nOr more."
    gift.scroll_into_view_if_needed()
    page.wait_for_function("document.querySelector('article.reward img')?.naturalWidth === 30")
    assert gift.locator("img").get_attribute("src") == loads
    assert "referer" not in headers, "the picture's host does not learn where it is shown"
    reward(page, "Sticker").scroll_into_view_if_needed()
    reward(page, "Sticker").locator("img").wait_for(state="detached")
    for name, letter in (("Sticker", "S"), ("Mug", "M")):
        assert reward(page, name).locator(".letter").text_content() == letter
        assert not reward(page, name).locator("img, .description").count()
    person.shoot("rewards-titled-375")
    press(page, SCRIPT_TITLE)
    gift.locator(".gained", has_text=f"Redeemed: {SCRIPT_TITLE} for 5 points.").wait_for()
    assert SCRIPT_TITLE in page.get_by_role("table", name="Rewards that you have redeemed").text_content()
    failed = "error: Failed to load resource: net::ERR_FAILED"
    assert sorted(person.problems) == sorted([f"asked {loads}", f"asked {fails}", failed])
    person.problems.clear()


def test_a_reward_is_redeemed_by_keyboard_and_what_is_missing_is_told(visit: Any) -> None:
    user = a_person(5)
    person = visit(viewport=PHONE)
    page = person.sign_in(user)
    person.go("rewards")
    prices = page.locator("article.reward .price").all_text_contents()
    assert prices == sorted(prices, key=lambda price: int(re.sub(r"\D", "", price))), (
        "the cheapest comes first"
    )
    mug = reward(page, "Mug")
    assert "30 points" in mug.text_content()
    assert "from Acme, about 50 left, 2 more for you" in mug.text_content()
    assert "999,950 points missing." in reward(page, "Space flight").text_content()
    assert not reward(page, "Space flight").get_by_role("button").count()
    assert "Nothing is left." in reward(page, "Old cap").text_content()
    expiring = page.get_by_role("table", name="Points that expire")
    assert re.search(r"in (89|90) days50$", expiring.locator("tbody tr").first.text_content())
    person.shoot("rewards-375")

    button = mug.get_by_role("button", name="Redeem")
    button.press("Enter")
    dialog = page.get_by_role("dialog", name="Redeem Mug for 30 points?")
    assert focus(page).startswith("H2"), "it reads what it asks first"
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    assert focus(page).endswith("Redeem"), "the keyboard is where it was"
    assert balance(user)["balance"] == 50

    press(page, "Mug")
    mug.locator(".gained", has_text="Redeemed: Mug for 30 points.").wait_for()
    assert mug.locator("[aria-live=polite] .gained").count() == 1
    assert balance(user)["balance"] == 20
    assert "10 points missing." in mug.text_content()
    assert focus(page) == "H3|reward-mug|Mug", "the button is gone, the keyboard stays at the reward"
    assert page.locator("#figure-points").text_content() == "20"
    assert "Mug" in page.get_by_role("table", name="Rewards that you have redeemed").text_content()
    assert "On its way" in page.locator(".rewards").text_content()
    person.shoot("rewards-redeemed-375")


def test_a_redemption_whose_answer_is_lost_is_made_once(visit: Any) -> None:
    user = a_person(5)
    person = visit()
    page = person.sign_in(user)
    person.go("rewards")
    keys: list[str] = []

    def lose(route: Any) -> None:
        if route.request.method == "GET":
            route.continue_()
            return
        keys.append(route.request.post_data_json["idempotency_key"])
        if len(keys) > 3:
            route.continue_()
            return
        route.fetch()
        if len(keys) == 1:
            route.abort()  # the page itself sends it again
        elif len(keys) == 2:
            route.fulfill(status=504, body="{}")
        else:
            route.fulfill(status=403, body="<html>Sign in to this network")  # not the service has refused it

    page.route("**/redemptions", lose)
    press(page, "Sticker")
    sticker = reward(page, "Sticker")
    sticker.locator("[aria-live=polite] .trouble", has_text="Press again: it is redeemed once.").wait_for()
    for _ in range(2):
        page.reload()
        person.view("rewards")
        assert "Your last try has had no answer." in sticker.text_content()
        press(page, "Sticker")
        sticker.locator("[aria-live=polite] :is(.trouble, .gained)").wait_for()
    sticker.locator(".gained", has_text="Your earlier try had arrived").wait_for()
    assert len(keys) == 4
    assert len(set(keys)) == 1
    assert balance(user)["balance"] == 40
    press(page, "Sticker")
    sticker.locator(".gained", has_text="Redeemed: Sticker for 10 points.").wait_for()
    assert len(set(keys)) == 2, "the next press is another redemption"
    assert balance(user)["balance"] == 30
    person.problems.clear()  # the browser itself notes what was lost


def test_a_refusal_and_a_debt_are_told_in_words(visit: Any) -> None:
    user = a_person(1)
    person = visit()
    page = person.sign_in(user)
    person.go("rewards")
    path = f"/v1/users/{user}/redemptions"
    call(user, "POST", path, {"reward": "sticker", "idempotency_key": "other"})
    press(page, "Sticker")
    told = reward(page, "Sticker").locator("[aria-live=polite] .trouble")
    told.wait_for()
    assert told.text_content() == "You do not have the points for this."
    assert len(person.problems) == 1, "the browser itself notes the 409"
    person.problems.clear()

    event = next(
        each["event_id"]
        for each in call(user, "GET", f"/v1/users/{user}/ledger")["entries"]
        if each["kind"] == "EARN"
    )
    body = {"event_id": event, "reason": "a mistake", "idempotency_key": "c"}
    call("root", "POST", f"/v1/users/{user}/clawbacks", body, GROUP_ADMIN)
    page.reload()
    person.view("rewards")
    assert "You owe 10 points" in page.locator(".rewards").text_content()
    assert "20 points missing." in reward(page, "Sticker").text_content()


def test_achievements_and_streaks_tell_what_is_reached_and_what_is_missing(visit: Any) -> None:
    user = a_person(3)
    person = visit(viewport=PHONE)
    page = person.sign_in(user)
    person.go("achievements")
    earned = page.get_by_role("region", name="Earned")
    assert re.search(r"^EarnedFirst lesson.*earned \d", earned.text_content())
    assert SCRIPT_TITLE not in earned.text_content()
    missing = page.get_by_role("region", name="Still to earn")
    assert SCRIPT_TITLE in missing.text_content(), "what an admin wrote is only text"
    assert page.locator("main img[onerror]").count() == 0
    assert "Lesson completed: 3 of 10 times" in missing.text_content()
    bars = missing.get_by_role("progressbar").evaluate_all("(all) => all.map((bar) => [bar.value, bar.max])")
    assert bars == [[3, 10], [0, 1]], "the nearest comes first"
    streaks = page.get_by_role("region", name="Streaks").text_content()
    assert "Every day1 day in a row, 1 at bestToday counts already." in streaks
    assert "Workouts0 weeks in a row, 0 at best" in streaks
    assert "Events: 0 of 3" in streaks
    person.shoot("achievements-375")


def test_of_two_achievements_as_near_the_one_with_fewest_steps_comes_first(visit: Any) -> None:
    page = visit().sign_in(f"new-{uuid4().hex[:8]}")

    def achievement(name: str, how: str, *needs: int) -> dict[str, Any]:
        conditions = [{"needs": each, "have": 0} for each in needs]
        return {"name": name, "needs": how, "achieved": False, "conditions": conditions}

    given = [
        achievement("25 lessons", "all", 25),
        achievement("both", "all", 10, 1),
        achievement("either", "any", 10, 3),
        achievement("first lesson", "all", 1),
    ]
    names = page.evaluate(
        f"""async (given) => {{
        const {{ nearest }} = {imported("achievements.js")};
        return nearest(given).map((each) => each.name); }}""",
        given,
    )
    assert names == ["first lesson", "either", "both", "25 lessons"]


def test_a_year_tells_what_each_date_was(visit: Any) -> None:
    """Active on 10, 12 and 20 June 2025; a freeze covers the 11th, nothing the 13th; today is of a later year."""
    user = f"walker-{uuid4().hex[:8]}"
    for day in (10, 12, 20):
        earn(user, 1, f"2025-06-{day}T12:00:00Z")
    call("root", "POST", f"/v1/users/{user}/freezes", {"granted_on": "2025-06-10"}, GROUP_ADMIN)
    person = visit(viewport={"width": 320, "height": 700})
    page = person.sign_in(user)
    person.go("calendar")
    page.goto(f"{person.url}#/calendar/2025")
    june = page.get_by_role("grid", name="June 2025")
    june.wait_for()
    assert june.get_by_role("columnheader", name="Monday").count() == 1
    row = june.get_by_role("row").filter(has=page.get_by_role("rowheader", name="Week 24", exact=True))
    cells = row.locator("td").evaluate_all("(all) => all.map((cell) => cell.ariaLabel)")
    assert cells[:5] == [
        *("Monday 9 June", "Tuesday 10 June, active", "Wednesday 11 June, covered by a freeze"),
        *("Thursday 12 June, active", "Friday 13 June, missed"),
    ]
    legend = page.locator("streakline-calendar [part=legend]").text_content()
    assert "3 active" in legend
    assert "1 covered" in legend
    assert "201 missed" in legend, "from 13 June on, but the 20th"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.get_by_role("grid").count() == 7, "from the first activity on, in June"
    december = page.get_by_role("grid", name="December 2025")
    for month, date in ((december, "Thursday 11 December"), (june, "Wednesday 11 June")):
        month.get_by_role("gridcell", name=date).click()
        told = page.locator(".calendar .told", has_text=f"{date} does not count")
        told.wait_for()
        place = told.bounding_box()
        assert 0 <= place["y"] <= 700 - place["height"], "it is in sight, wherever the date is"
    assert "freeze" in told.text_content()
    before, after = (page.get_by_role("button", name=f"{way} year") for way in ("Previous", "Next"))
    assert before.get_attribute("aria-disabled") == "true", "nothing came before"
    person.shoot("calendar-320")
    after.press("Enter")
    january = page.get_by_role("grid", name="January 2026")
    january.wait_for()
    assert page.url.endswith("#/calendar/2026"), "a reload shows the same year"
    assert january.locator("[data-state=missed]").count() == 31


def test_admins_see_the_book_its_versions_and_how_two_differ(visit: Any) -> None:
    book = a_book()
    book["event_types"]["CHECK_IN"]["points"] = 4
    picture = "data:image/svg+xml,<svg%20xmlns='http://www.w3.org/2000/svg'/>"
    book["rewards"]["poster"] = {"price_points": 70, "brand": "acme", "image_url": picture}
    number = publish(book, note=SCRIPT_TITLE)
    admin = visit(viewport=PHONE)
    page = admin.sign_in("root", "admin")
    admin.go("book")
    assert f"Version {number}, since" in page.get_by_role("region", name="In force").first.text_content()
    versions = page.get_by_role("table", name="Versions of the book")
    newest = versions.locator("tbody tr").first.text_content()
    assert newest.startswith(str(number))
    assert newest.endswith(f"by root: {SCRIPT_TITLE}in force"), "what an admin wrote is only text"
    assert "the beginning" in versions.locator("tbody tr").last.text_content()
    page.get_by_label("Before").select_option(str(number - 1))
    page.get_by_role("button", name="Compare", exact=True).press("Enter")
    found = page.get_by_role("table", name="Differences")
    found.wait_for()
    assert found.locator("tbody tr").all_text_contents() == [
        "event_types.CHECK_IN.points54",
        "rewards.posternothing{ brand: acme, image_url: a picture, price_points: 70 }",
    ]
    assert found.evaluate("(table) => table.closest('[aria-live=polite]') !== null")
    assert page.locator("main img").count() == 0
    admin.shoot("book-compared-375")

    person = visit()
    plain = person.sign_in("nobody")
    assert not plain.locator("#nav-book").is_visible()
    plain.goto(f"{person.url}#/book")
    person.view("you")


def test_how_two_books_differ_is_told_in_short_lines(visit: Any) -> None:
    page = visit().sign_in("root", "admin", at="book")
    text, picture = "word " * 100, "data:image/svg+xml,"
    rewards = {"mug": {"price_points": 5}, "cap": {"price_points": 7}}
    pairs = [
        ({}, {"rewards": rewards}),
        ({"rewards": rewards}, {"rewards": {}}),
        ({"text": text}, {"text": f"{text}after"}),
        ({"image_url": f"{picture}1"}, {"image_url": f"{picture}2"}),
        ({"text": text}, {"text": picture}),
    ]
    found = page.evaluate(
        f"""async (pairs) => {{
        const {{ differences }} = {imported("book.js")};
        return pairs.map(([before, after]) => differences(before, after)); }}""",
        pairs,
    )
    cap, mug = "{ price_points: 7 }", "{ price_points: 5 }"
    assert found[0] == [["rewards.cap", "nothing", cap], ["rewards.mug", "nothing", mug]]
    assert found[1] == [["rewards.cap", cap, "gone"], ["rewards.mug", mug, "gone"]]
    assert [each[-8:] for each in found[2][0][1:]] == ["rd word ", "rd after"], "what differs is seen"
    assert found[3] == [["image_url", "a picture", "another picture"]]
    assert found[4][0][2] == "a picture"
    assert all(len(value) < 200 for rows in found for row in rows for value in row)


def test_the_ledger_goes_by_day_and_says_why_a_row_is_0(visit: Any) -> None:
    user = f"keen-{uuid4().hex[:8]}"
    today = datetime.now(UTC)
    for at in (today, today - timedelta(days=2)):  # the older ones come last
        call("server", "POST", "/v1/events", {"events": [opening(user, at) for _ in range(3)]}, PRODUCERS)
    wait_for_balance(user, 2)
    person = visit(viewport=PHONE, timezone_id="UTC")
    page = person.sign_in(user)
    table = page.get_by_role("table", name="Ledger: 2 days")
    days = table.locator("tbody").all_text_contents()
    assert [each.split("App opened")[0] for each in days] == [
        f"{today - timedelta(days=ago):%A} {(today - timedelta(days=ago)).day} {today - timedelta(days=ago):%B}+1"
        for ago in (0, 2)
    ]
    for each in days:
        assert "App opened, 2 timesthe limit of 1 point a day was reached" in each
    assert f"came late, on {today.day} {today:%B}" in days[1]
    assert "came late" not in days[0]
    assert page.locator("#figure-points").text_content() == "2"
    person.shoot("you-ledger-375")


def test_a_balance_that_unread_rows_may_change_is_not_shown(visit: Any) -> None:
    """15 rows in time, then 20 that came late, all at once: the first page has 15 of these."""
    start = datetime(2026, 3, 1, 12, tzinfo=UTC)
    moments = [start + timedelta(days=day) for day in range(20, 35)] + [
        start + timedelta(days=day) for day in range(20)
    ]
    booked = [max(moments[: number + 1]) + timedelta(minutes=number) for number in range(len(moments))]
    entries = [
        {"points": 10, "balance": 10 * (number + 1), "occurred_at": at.isoformat(), "created_at": late.isoformat(),
         "activity_date": at.date().isoformat()}
        for number, (at, late) in enumerate(zip(moments, booked, strict=True))
    ][::-1]  # fmt: skip
    page = visit(timezone_id="UTC").sign_in(f"late-{uuid4().hex[:8]}")
    shown = page.evaluate(
        f"""async (entries) => {{
        const {{ inTime }} = {imported("ledger.js")};
        const balances = (rows, hasMore) => inTime(rows, hasMore).map((row) => row.balanceThen ?? null);
        return [balances(entries.slice(0, 15), true), balances(entries, false)]; }}""",
        entries,
    )
    assert shown == [[None] * 15, [10 * left for left in range(35, 0, -1)]]


def test_the_ledger_goes_by_time_and_its_balances_add_up(visit: Any) -> None:
    user = f"orderly-{uuid4().hex[:8]}"
    noon = datetime.now(UTC).replace(hour=12, minute=0) - timedelta(days=1)
    for at, lessons in ((noon, 1), (noon - timedelta(hours=2), 2), (noon - timedelta(days=1), 1)):
        earn(user, lessons, at.isoformat())
    page = visit(timezone_id="UTC").sign_in(user)
    rows = page.locator(".ledger tbody tr:not(.day)")
    told = [
        (row.locator("small").text_content()[:5], row.locator("td").last.text_content()) for row in rows.all()
    ]
    assert told == [("12:00", "40"), ("10:00", "30"), ("10:00", "20"), ("12:00", "10")]


def opening(user: str, at: datetime) -> dict[str, Any]:
    return {
        "user_id": user,
        "idempotency_key": uuid4().hex,
        "event_type": "APP_OPENED",
        "occurred_at": at.isoformat(),
    }


def wait_for_balance(user: str, points: int) -> None:
    until = time.monotonic() + LONG_SECONDS
    while (
        len(call(user, "GET", f"/v1/users/{user}/ledger")["entries"]) < 6 or balance(user)["balance"] < points
    ):
        assert time.monotonic() < until, f"{user} never got the points"
        time.sleep(0.05)


def test_more_of_the_ledger_comes_when_it_is_asked_for(visit: Any) -> None:
    user, today = f"buyer-{uuid4().hex[:8]}", datetime.now(UTC)
    for lessons, ago in ((14, 2), (19, 0), (1, 3)):
        earn(user, lessons, (today - timedelta(days=ago)).isoformat())
    person = visit()
    page = person.sign_in(user)
    more = page.get_by_role("button", name="Show more")
    shown = page.locator(".ledger tbody tr:not(.day)")
    before = shown.count()
    assert before == 15
    left = [str(points) for points in range(340, 0, -10)]
    assert set(shown.locator("td:last-child").all_text_contents()) == {""}, "unread rows are of the same time"
    more.press("Enter")
    shown.nth(29).wait_for()
    more.press("Enter")
    more.wait_for(state="hidden")
    assert shown.count() == 34
    assert shown.locator("td:last-child").all_text_contents() == left
    assert page.locator(".ledger .day").count() == 3


def test_admins_check_compare_and_publish_a_book(visit: Any) -> None:
    admin = visit(viewport=PHONE)
    page = admin.sign_in("root", "admin")
    admin.go("book")
    change = page.get_by_role("region", name="Change the book")
    text, publish_button = (
        change.get_by_label("The book, as YAML or JSON"),
        change.get_by_role("button", name="Publish"),
    )
    check = change.get_by_role("button", name="Check and compare")
    for wrong, words in (
        ('{"event_types":', "no JSON"),
        ("streaks:\n  - [", "no YAML"),
        ("", "no book"),
    ):
        text.fill(wrong)
        check.press("Enter")
        change.get_by_role("alert").filter(has_text=words).wait_for()
    change.get_by_role("button", name="Take the book in force").press("Enter")
    check.press("Enter")
    change.get_by_text("They are the same.").wait_for()
    assert not publish_button.is_visible(), "there is nothing to publish"
    book = json.loads(text.input_value())
    before = call("root", "GET", "/v1/rules")["version"]
    book["event_types"]["CHECK_IN"]["points"] = "many"
    text.fill(json.dumps(book))
    check.press("Enter")
    faults = change.get_by_role("table", name="Faults")
    faults.wait_for()
    assert "event_types.CHECK_IN.points" in faults.text_content()
    assert not publish_button.is_visible()
    book["event_types"]["CHECK_IN"]["points"] = 3 if book["event_types"]["CHECK_IN"]["points"] != 3 else 2
    file = {"name": "book.yaml", "mimeType": "application/yaml", "buffer": yaml.safe_dump(book).encode()}
    change.get_by_label("or a file (YAML or JSON)").set_input_files(files=[file])
    change.get_by_label("Why").fill(SCRIPT_TITLE)
    check.press("Enter")
    change.get_by_text(f"It would be version {before + 1}.").wait_for()
    assert "event_types.CHECK_IN.points" in change.get_by_role("table", name="Differences").text_content()
    assert call("root", "GET", "/v1/rules")["version"] == before, "a check publishes nothing"
    admin.shoot("book-checked-375")
    text.press("End")
    text.press("Space")
    assert not publish_button.is_visible(), "what is changed is checked anew"
    check.press("Enter")
    publish_button.press("Enter")
    page.keyboard.press("Escape")
    publish_button.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Yes, publish").press("Enter")
    page.get_by_text(f"Version {before + 1}, since").wait_for()
    assert call("root", "GET", "/v1/rules")["book"] == book
    assert focus(page).startswith("H1")
    assert page.locator("main img").count() == 0
    assert len(admin.problems) == 1, "the browser itself notes the 422"
    admin.problems.clear()


def test_a_book_is_undone_by_an_older_version(visit: Any) -> None:
    """The older version is in the editor, differs from the one in force, and is published again."""
    admin = visit()
    was = call("root", "GET", "/v1/rules")
    other = json.loads(json.dumps(was["book"]))
    other["event_types"]["CHECK_IN"] = {"points": 77}
    publish(other, "a mistake")
    page = admin.sign_in("root", "admin", at="book")
    versions = page.get_by_role("region", name="Versions of the book")
    versions.get_by_role("button", name=re.compile(rf"version {was['version']}$")).press("Enter")
    change = page.get_by_role("region", name="Change the book")
    text = change.get_by_label("The book, as YAML or JSON")
    page.locator("#book-text:focus").wait_for()
    assert json.loads(text.input_value()) == was["book"]
    change.get_by_role("button", name="Check and compare").press("Enter")
    change.get_by_role("button", name="Publish").press("Enter")
    page.get_by_role("button", name="Yes, publish").press("Enter")
    versions.get_by_role("button", name=re.compile(rf"version {was['version'] + 1}$")).wait_for()
    now = call("root", "GET", "/v1/rules")
    assert (now["version"], now["book"]) == (was["version"] + 2, was["book"])
