"""The custom elements and whom they ask: what is asked, what is said when it fails, and what a late answer may do."""

from typing import Any

import pytest

from tests.browser.stranger import stranger

pytestmark = pytest.mark.xdist_group("browser")
PROFILE = {
    "current_streak": 3,
    "longest_streak": 9,
    "streak_status": "active",
    "as_of": "2026-03-01",
    "last_activity_date": "2026-03-01",
}
MARCH = {
    "activity": [{"activity_date": "2026-02-28"}],
    "covered": [{"date": "2026-02-27", "reason": "covered_by_freeze"}],
}
ROOT = "streakline-{} [part=root]"


def shown(page: Any, name: str, number: int = 0) -> str:
    return " ".join(page.page.locator(ROOT.format(name)).nth(number).inner_text().split())


@pytest.mark.parametrize(
    ("fault", "words", "again"),
    [
        ("refusal(401)", "Your sign-in has ended. Sign in again.", False),
        ("refusal(403)", "Your sign-in does not reach this.", False),
        ("refusal(410)", "This account was erased.", False),
        ("refusal(429)", "That was a lot at once. Try again in a minute.", True),
        ("refusal(503)", "The service is busy. Try again in a moment.", True),
        ("refusal(404)", "This could not be loaded.", True),
        ("new TypeError('Failed to fetch')", "The service cannot be reached. Check your connection.", True),
        ("undefined", "This could not be loaded.", True),
    ],
)
def test_what_a_refusal_says_and_what_stays(browser: Any, fault: str, words: str, again: bool) -> None:
    with stranger(browser) as page:
        page.open("<streakline-streak></streakline-streak>")
        page.answer("streak", profile=PROFILE)
        assert shown(page, "streak") == "3 days in a row Today counts already."
        page.page.evaluate(f"() => {{ answers.profile = () => Promise.reject({fault}) }}")
        page.page.evaluate("document.querySelector('streakline-streak').refresh()")
        alert = page.page.get_by_role("alert")
        assert alert.locator("p").inner_text() == words
        assert alert.get_by_role("button").count() == int(again)
        assert ("3 days" in shown(page, "streak")) == again, "what is another's now does not stay"
        assert [name for name, _ in page.page.evaluate("told")] == ["streakline-error"]
        if not again:
            return
        page.page.evaluate("(profile) => { answers.profile = profile }", PROFILE | {"current_streak": 4})
        page.page.get_by_role("button", name="Try again").press("Enter")
        alert.wait_for(state="detached")
        assert shown(page, "streak").startswith("4 days in a row")
        focus = "document.querySelector('streakline-streak').shadowRoot.activeElement.dataset.key"
        assert page.page.evaluate(focus) == "root", "the button is gone, the keyboard stays at the element"


def test_loading_is_told_and_an_element_that_goes_meanwhile_is_left_alone(browser: Any) -> None:
    with stranger(browser) as page:
        page.open("<streakline-streak></streakline-streak>")
        page.page.evaluate(
            """() => { window.first = held(); answers.profile = () => first;
            window.element = document.querySelector('streakline-streak'); element.client = client(); }"""
        )
        page.page.locator("streakline-streak [part=loading]").wait_for()
        assert page.page.locator(ROOT.format("streak")).get_attribute("aria-busy") == "true"
        page.page.evaluate("(p) => { element.remove(); first.go(p); return element.ready }", PROFILE)
        page.page.evaluate(
            "(p) => { answers.profile = p; document.querySelector('main').append(element); return element.ready }",
            PROFILE,
        )
        assert shown(page, "streak").startswith("3 days in a row")
        assert page.page.locator(ROOT.format("streak")).get_attribute("aria-busy") == "false"
        assert len(page.page.evaluate("calls")) == 2


def test_a_late_answer_of_another_person_is_not_shown(browser: Any) -> None:
    with stranger(browser) as page:
        page.open("<streakline-streak></streakline-streak>")
        page.page.evaluate(
            """async (p) => { const e = window.element = document.querySelector('streakline-streak');
            const ann = held(), ben = held();
            answers.profile = () => ann; e.client = client(); await Promise.resolve();
            answers.profile = () => ben; e.client = client(); const ready = e.ready;
            await Promise.resolve(); ben.go({ ...p, current_streak: 7 }); await ready; ann.go(p); await ann; }""",
            PROFILE,
        )
        assert shown(page, "streak").startswith("7 days in a row")
        page.page.evaluate("() => { element.client = null; return element.ready }")
        assert shown(page, "streak") == "", "nobody is signed in any more"


def test_two_elements_of_a_kind_do_not_touch_each_other(browser: Any) -> None:
    with stranger(browser) as page:
        page.open(
            "<streakline-calendar></streakline-calendar><streakline-calendar year=2025></streakline-calendar>"
        )
        data = {"today": "2026-03-01", "first": "2025-01-01", "states": {}}
        page.give("calendar", data=data)
        page.give("calendar", number=1, data=data)
        calendars = page.page.locator("streakline-calendar")
        calendars.nth(0).get_by_role("button", name="Previous month").click()
        assert calendars.nth(0).get_by_role("grid", name="February 2026").count() == 1
        assert calendars.nth(1).get_by_role("grid").count() == 12
        for number in (0, 1):
            assert calendars.nth(number).locator("td[tabindex='0']").count() == 1


def test_the_calendar_asks_for_what_it_shows(browser: Any) -> None:
    with stranger(browser, timezone_id="Pacific/Kiritimati") as page:
        page.open("<streakline-calendar></streakline-calendar>")
        page.answer("calendar", profile=PROFILE, activity=MARCH, explain={"reason": "counted"})
        assert page.page.evaluate("calls") == [
            ["profile"],
            ["activity", {"from": "2026-03-01", "to": "2026-03-31"}],
            ["explain", "2026-02-28"],
        ]
        cell = page.page.get_by_role("gridcell", name="Sunday 1 March, today, active")
        assert cell.count() == 1, "what waits on the device counts already"
        page.page.evaluate("calls.length = 0")
        cell.focus()
        page.page.keyboard.press("ArrowLeft")
        page.page.keyboard.press("ArrowLeft")  # while February is loading
        page.page.get_by_role("grid", name="February 2026").wait_for()
        page.page.evaluate("document.querySelector('streakline-calendar').ready")
        focus = "document.querySelector('streakline-calendar').shadowRoot.activeElement.ariaLabel"
        assert page.page.evaluate(focus) == "Friday 27 February, covered by a freeze"
        assert ["explain", "2026-01-31"] in page.page.evaluate("calls")
        page.page.evaluate("() => { answers.explain = { reason: 'before_first_activity' } }")
        page.page.evaluate("document.querySelector('streakline-calendar').refresh()")
        assert page.page.get_by_role("button", name="Previous month").get_attribute("aria-disabled") == "true"
        assert page.page.locator("streakline-calendar td[data-state=missed]").count() == 0


def test_who_has_done_nothing_yet(browser: Any) -> None:
    nobody = PROFILE | {"current_streak": 0, "streak_status": "none", "last_activity_date": None}
    with stranger(browser) as page:
        page.open("<streakline-streak></streakline-streak><streakline-calendar></streakline-calendar>")
        page.answer("streak", profile=nobody)
        page.answer(
            "calendar", profile=nobody, activity={"activity": []}, explain={"reason": "before_first_activity"}
        )
        assert shown(page, "streak") == "0 days in a row The first day that counts begins it."
        assert "No active day yet." in shown(page, "calendar")
        assert page.page.locator("streakline-calendar td[data-state]").count() == 0


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "America/Los_Angeles", "Asia/Kathmandu", "UTC"])
def test_no_zone_of_the_device_moves_a_date(browser: Any, zone: str) -> None:
    """Of the user's zone is `today`. 29 February, and the days on which clocks are put forward and back, are there."""
    with stranger(browser, timezone_id=zone) as page:
        page.open("<streakline-calendar year=2024></streakline-calendar>")
        states = {
            "2024-02-29": "active",
            "2024-03-10": "active",
            "2024-11-03": "active",
            "2024-12-31": "active",
        }
        page.give("calendar", data={"today": "2024-12-31", "first": "2024-02-29", "states": states})
        for name in (
            "Thursday 29 February",
            "Sunday 10 March",
            "Sunday 3 November",
            "Tuesday 31 December, today",
        ):
            assert page.page.get_by_role("gridcell", name=f"{name}, active").count() == 1
        assert page.page.locator("streakline-calendar td[aria-label]").count() == 366 - 31  # no January
        assert page.page.locator("streakline-calendar td[data-state=missed]").count() == 307 - 4


@pytest.mark.parametrize("asked", ["2026-13", "nonsense", "2999-01", "", "0000-01", "__proto__"])
def test_a_month_that_is_none_or_to_come_is_this_one(browser: Any, asked: str) -> None:
    with stranger(browser) as page:
        page.open(f'<streakline-calendar month="{asked}"></streakline-calendar>')
        page.give(
            "calendar",
            data={"today": "2026-03-01", "first": "2026-01-01", "states": {"2026-02-01": "nonsense"}},
        )
        assert page.page.get_by_role("grid", name="March 2026").count() == 1


def test_properties_that_were_set_before_the_module_came(browser: Any) -> None:
    with stranger(browser) as page:
        page.open("<p></p>")
        page.page.evaluate(
            """async (p) => { const late = document.createElement('streakline-late'); late.data = p; late.labels = { active: 'Yes!' };
            document.querySelector('main').append(late);
            const Streak = customElements.get('streakline-streak'); customElements.define('streakline-late', class extends Streak {});
            await late.ready; }""",
            PROFILE,
        )
        assert shown(page, "late") == "3 days in a row Yes!"


def test_data_of_another_shape_is_told_and_breaks_nothing(browser: Any) -> None:
    with stranger(browser) as page:
        page.open("<streakline-leaderboard></streakline-leaderboard>")
        page.give("leaderboard", data={"rows": []})
        assert shown(page, "leaderboard") == "This could not be loaded."
        assert len(page.problems) == 1
        page.problems.clear()
        page.give("leaderboard", data={"entries": [{"rank": 1, "alias": "Ann", "score": 2}]})
        assert "Ann" in shown(page, "leaderboard")


def test_a_rank_that_does_not_come_hides_no_board(browser: Any) -> None:
    with stranger(browser) as page:
        page.open("<streakline-leaderboard></streakline-leaderboard>")
        board = {"entries": [{"rank": 1, "alias": "Ann", "score": 2}]}
        page.answer("leaderboard", leaderboard=board, rank="=() => Promise.reject(refusal(503))")
        assert shown(page, "leaderboard") == "Longest streaks Rank Who Days 1 Ann 2"


@pytest.mark.parametrize("today", ["9999-12-31", "nonsense", "2026-31-31"])
def test_a_calendar_of_a_day_that_is_none_is_told_and_hangs_nothing(browser: Any, today: str) -> None:
    with stranger(browser) as page:
        page.open("<streakline-calendar></streakline-calendar>")
        page.give("calendar", data={"today": today, "first": "0001-01-01", "states": {}})
        assert shown(page, "calendar") == "This could not be loaded."
        page.problems.clear()
