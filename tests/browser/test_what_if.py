"""An admin asks in the page what another book would have led to: plots, the figures behind them, and refusals."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from adapters.platform.objects import S3Objects
from analytics.steps import what_if_function
from tests.browser.given import SCRIPT_TITLE, a_book, call
from tests.browser.test_page import all_violations
from tests.support.engine import Engine
from tests.support.gateway import GROUP_ADMIN
from tests.support.what_if_goals import GoalWhatIfStory
from tests.support.what_if_story import WhatIfStory
from tests.support.what_ifs import Functions, lake_of_its_own

pytestmark = pytest.mark.xdist_group("browser")
PHONE = {"width": 320, "height": 700}
PLOTS = 4
PATH = "/v1/rules/what-ifs"


@pytest.fixture
def own(site: str, engine: Engine) -> Iterator[tuple[S3Objects, Functions]]:
    with lake_of_its_own(engine, is_at_once=True) as made:
        yield made


@pytest.fixture
def lake(own: tuple[S3Objects, Functions]) -> S3Objects:
    return own[0]


@pytest.fixture
def functions(own: tuple[S3Objects, Functions]) -> Functions:
    return own[1]


def opened(person: Any) -> Any:
    page = person.sign_in("root", "admin")
    person.go("book")
    return page


def press(page: Any, document: Any) -> Any:
    """Ask what a book would have led to; returns the card."""
    page.get_by_label("The book, as YAML or JSON").fill(json.dumps(document))
    card = page.get_by_role("region", name="What it would have led to").first
    card.get_by_role("button", name="What if").press("Enter")
    return card


def report(functions: Functions) -> dict[str, Any]:
    """What the API says to the question that was asked last."""
    return dict(call("root", "GET", f"{PATH}/{functions.asked[-1]}", None, GROUP_ADMIN)["report"])


def numbers(table: Any) -> list[list[str]]:
    return [
        [each.replace(",", "") for each in row.locator("th, td").all_text_contents()]
        for row in table.locator("tbody tr").all()
    ]


def test_a_report_is_drawn_and_each_plot_has_its_figures(
    visit: Any, lake: S3Objects, functions: Functions
) -> None:
    story = WhatIfStory(26)
    story.into(lake)
    person = visit(viewport=PHONE, color_scheme="light")
    page = opened(person)
    press(page, story.some_book())
    page.get_by_role("heading", name="What if this book had been in force").wait_for()
    told = report(functions)
    assert told["largest_changes"]
    assert page.locator("figure.plot svg").count() == PLOTS
    totals = numbers(page.get_by_role("table", name="Users, points and streaks"))
    points, liability = told["points"], told["liability"]
    assert totals[0][1:3] == [str(points["before"]), str(points["after"])]
    assert totals[1][1:3] == [str(liability["before"]), str(liability["after"])]
    types = page.locator("figure.plot").nth(1)
    types.locator("summary").focus()
    page.keyboard.press("Enter")
    found = numbers(types.get_by_role("table"))
    assert [each[1:] for each in found] == [
        [str(each["before"]), str(each["after"])] for each in told["by_type"].values()
    ]
    bars = types.locator("rect.after").evaluate_all(
        "(all) => all.map((each) => Number(each.getAttribute('width')))"
    )
    earned = [each["after"] for each in told["by_type"].values()]
    longest = bars[earned.index(max(earned))]
    assert bars == pytest.approx([each / max(earned) * longest for each in earned], abs=0.1)
    lines = page.locator("figure.plot").nth(PLOTS - 1).locator("polyline")
    reach = len(told["streaks"]["survival"])
    assert [len(each.get_attribute("points").split()) for each in lines.all()] == [reach, reach]
    hints = page.locator("figure.plot").nth(PLOTS - 1).locator("rect.hit title")
    shown = numbers(page.locator("figure.plot").nth(PLOTS - 1).locator("table"))
    assert hints.all_text_contents() == [f"{days}: before {one}, after {two}" for days, one, two in shown]
    assert page.locator("main img").count() == 0, "what a report says is only text"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    causes = page.get_by_role("table", name="The largest changes").locator("tbody tr").first
    row, why = causes.bounding_box(), causes.locator("td").last.bounding_box()
    assert why["width"] == pytest.approx(row["width"], abs=1), "reasons have a line of their own"
    assert all_violations(page) == []
    person.shoot("what-if-320-light")


def test_classes_stand_from_the_largest_loss_to_the_largest_gain_and_no_text_covers_another(
    visit: Any, lake: S3Objects, functions: Functions
) -> None:
    story = WhatIfStory(26)
    story.into(lake)
    page = opened(visit())
    press(page, story.some_book())
    plots = page.locator("figure.plot")
    plots.first.locator("summary").click()
    found = numbers(plots.first.get_by_role("table"))
    assert [each[0] for each in found] == [
        name.replace(",", "")
        for name in (
            *("-1001 and more", "-101 to -1000", "-11 to -100", "-1 to -10", "0"),
            *("+1 to +10", "+11 to +100", "+101 to +1000", "+1001 and more"),
        )
    ]
    assert sum(int(users) for _, users in found) == report(functions)["users"]["all"]
    covered = plots.evaluate_all("""(all) => all.flatMap((plot) => {
      const boxes = [...plot.querySelectorAll("svg text")].map((each) => [each.textContent, each.getBoundingClientRect()]);
      return boxes.flatMap(([one, a], place) => boxes.slice(place + 1).filter(([, b]) =>
        a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3).map(([other]) => [one, other]));
    })""")
    assert covered == []


def test_a_lake_without_users_makes_a_report_too(visit: Any, lake: S3Objects) -> None:
    page = opened(visit())
    press(page, a_book())
    page.get_by_text("Of 0 users 0 would have a higher balance").wait_for()
    assert page.locator("figure.plot svg").count() == PLOTS


def test_streaks_and_achievements_that_differ_are_tables_of_the_report(
    visit: Any, lake: S3Objects, functions: Functions
) -> None:
    story = GoalWhatIfStory(2)
    story.into(lake)
    document = story.some_book()
    for each in document["achievements"].values():
        each["title"] = SCRIPT_TITLE
    page = opened(visit(viewport=PHONE))
    press(page, document)
    streaks = page.get_by_role("table", name="Streaks of the book that differ")
    streaks.wait_for()
    told = report(functions)
    assert [each[1:] for each in numbers(streaks)] == [
        [each["change"], each["per"]]
        + [f"{each['before'][name]} → {each['after'][name]}" for name in ("reached", "current", "longest")]
        for each in told["goals"]["streaks"]
    ]
    achievements = page.get_by_role("table", name="Achievements that differ")
    assert SCRIPT_TITLE in [row[0] for row in numbers(achievements)]
    assert page.locator("main img").count() == 0, "what a report says is only text"
    page.get_by_label("The book, as YAML or JSON").fill(json.dumps(a_book()))
    page.get_by_role("button", name="What if").press("Enter")
    streaks.wait_for(state="detached")
    page.locator("figure.plot").first.wait_for()


def test_an_admin_sees_that_it_is_worked_out_and_why_it_fails(
    visit: Any, lake: S3Objects, functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions.is_at_once = False
    admin, another, book = visit(viewport=PHONE), visit(), a_book()
    page, other = opened(admin), opened(another)
    with page.expect_response(f"**{PATH}"):
        card = press(page, book)
    card.get_by_text("It is being worked out.").wait_for()
    admin.shoot("what-if-running-320")
    card.get_by_role("button", name="What if").press("Enter")
    refusal = press(other, book | {"expiry": {"after_days": 7}}).get_by_role("alert")
    refusal.filter(has_text="is being worked out: ask again afterwards").wait_for()
    assert len(functions.asked) == 1

    def fail(*_: Any) -> None:
        raise ValueError

    with monkeypatch.context() as patch:
        patch.setattr(what_if_function, "what_if", fail)
        with pytest.raises(ValueError):
            functions.work()
    card.get_by_role("alert").filter(has_text="The what-if failed: ValueError ended it").wait_for()
    assert len(another.problems) == 1, "the browser itself notes the 409"
    another.problems.clear()


def test_what_is_wrong_with_a_book_or_a_day_is_told_at_its_field(visit: Any, functions: Functions) -> None:
    admin, book = visit(), a_book()
    page = opened(admin)
    card = press(page, book | {"event_types": {"READ": {"points": "many"}}})
    faults = card.get_by_role("table", name="Faults")
    faults.filter(has_text="event_types.READ.points").wait_for()
    card.get_by_label("In force from").fill("2026-03-02")
    card.get_by_label("Until").fill("2026-03-01")
    press(page, book)
    faults.filter(has_text="must be after from").wait_for()
    assert functions.asked == []
    card.get_by_label("Until").fill("2026-03-03")
    press(page, book)
    card.locator("figure.plot").first.wait_for()
    assert (report(functions)["from"], report(functions)["to"]) == (
        "2026-03-02T00:00:00+00:00",
        "2026-03-03T00:00:00+00:00",
    )
    assert len(admin.problems) == 2, "the browser itself notes each 422"
    admin.problems.clear()
