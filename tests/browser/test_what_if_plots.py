"""An admin opens the report of `streakline rules what-if` in the page: plots, the figures behind them, and wrong files."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from adapters.platform.objects import FolderObjects
from analytics.what_if.summary import summary
from analytics.what_if.what_if import WhatIfQuestion, what_if
from rules.book.document import read_book
from tests.browser.given import SCRIPT_TITLE
from tests.browser.test_page import axe
from tests.support.what_if_goals import GoalWhatIfStory
from tests.support.what_if_story import WhatIfStory

pytestmark = pytest.mark.xdist_group("browser")
PHONE = {"width": 320, "height": 700}
PLOTS = 4


def report(folder: Path, *, is_empty: bool = False) -> dict[str, Any]:
    story, objects = WhatIfStory(26), FolderObjects(folder)
    if not is_empty:
        story.into(objects)
    now = datetime(2027, 1, 1, tzinfo=UTC) if is_empty else story.now
    told = summary(what_if(objects, WhatIfQuestion(read_book(story.some_book()), now)), SCRIPT_TITLE)
    return dict(json.loads(json.dumps(told)))


def opened(person: Any) -> Any:
    page = person.sign_in("root", "admin")
    person.go("book")
    return page


def choose(page: Any, text: str) -> None:
    file = {"name": "what-if.json", "mimeType": "application/json", "buffer": text.encode()}
    page.get_by_label("Show its report").set_input_files(files=[file])


def numbers(table: Any) -> list[list[str]]:
    return [
        [each.replace(",", "") for each in row.locator("th, td").all_text_contents()]
        for row in table.locator("tbody tr").all()
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_is_drawn_and_each_plot_has_its_figures(visit: Any, tmp_path: Path, scheme: str) -> None:
    told = report(tmp_path)
    person = visit(viewport=PHONE, color_scheme=scheme)
    page = opened(person)
    choose(page, json.dumps(told))
    page.get_by_role("heading", name=f"What if {SCRIPT_TITLE} had been in force").wait_for()
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
    assert page.locator("main img").count() == 0, "what a report says is only text"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.evaluate(axe())
    assert page.evaluate("async () => (await axe.run({ resultTypes: ['violations'] })).violations") == []
    person.shoot(f"what-if-320-{scheme}")


def test_classes_stand_from_the_largest_loss_to_the_largest_gain_and_no_text_covers_another(
    visit: Any, tmp_path: Path
) -> None:
    told = report(tmp_path)
    page = opened(visit())
    choose(page, json.dumps(told))
    plots = page.locator("figure.plot")
    plots.first.locator("summary").click()
    found = numbers(plots.first.get_by_role("table"))
    assert [each[0] for each in found] == [
        name.replace(",", "")
        for name in (
            *("-1000 and more", "-101 to -1000", "-11 to -100", "-1 to -10", "0"),
            *("+1 to +10", "+11 to +100", "+101 to +1000", "+1000 and more"),
        )
    ]
    assert sum(int(users) for _, users in found) == told["users"]["all"]
    covered = plots.evaluate_all("""(all) => all.flatMap((plot) => {
      const boxes = [...plot.querySelectorAll("svg text")].map((each) => [each.textContent, each.getBoundingClientRect()]);
      return boxes.flatMap(([one, a], place) => boxes.slice(place + 1).filter(([, b]) =>
        a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3).map(([other]) => [one, other]));
    })""")
    assert covered == []


def test_a_lake_without_users_makes_a_report_too(visit: Any, tmp_path: Path) -> None:
    page = opened(visit())
    choose(page, json.dumps(report(tmp_path, is_empty=True)))
    page.get_by_text("Of 0 users 0 would have a higher balance").wait_for()
    assert page.locator("figure.plot svg").count() == PLOTS


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "{}", '{"users": {}}', '{"book": 1, "users": {"all": "x"}}']
)
def test_a_file_that_is_no_report_is_told_and_the_next_one_is_shown(
    visit: Any, tmp_path: Path, text: str
) -> None:
    page = opened(visit())
    choose(page, text)
    page.get_by_role("alert").filter(has_text="This file is no report").wait_for()
    assert page.locator("figure.plot").count() == 0
    choose(page, json.dumps(report(tmp_path)))
    page.locator("figure.plot").first.wait_for()
    assert page.get_by_role("alert").count() == 0


def test_streaks_and_achievements_that_differ_are_tables_of_the_report(visit: Any, tmp_path: Path) -> None:
    story, objects = GoalWhatIfStory(2), FolderObjects(tmp_path)
    story.into(objects)
    told = summary(what_if(objects, WhatIfQuestion(read_book(story.some_book()), story.now)), "book.yaml")
    told["goals"]["achievements"][0]["title"] = SCRIPT_TITLE
    person = visit(viewport=PHONE)
    page = opened(person)
    choose(page, json.dumps(told))
    streaks = page.get_by_role("table", name="Streaks of the book that differ")
    streaks.wait_for()
    assert [each[1:] for each in numbers(streaks)] == [
        [each["change"], each["per"]]
        + [f"{each['before'][name]} → {each['after'][name]}" for name in ("reached", "current", "longest")]
        for each in told["goals"]["streaks"]
    ]
    achievements = page.get_by_role("table", name="Achievements that differ")
    assert numbers(achievements)[0][0] == SCRIPT_TITLE
    assert page.locator("main img").count() == 0, "what a report says is only text"
    choose(page, json.dumps({name: each for name, each in told.items() if name != "goals"}))
    streaks.wait_for(state="detached")
    assert page.locator("figure.plot svg").count() == PLOTS, "a report of an earlier release is drawn, too"
