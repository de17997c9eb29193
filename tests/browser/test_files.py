"""The files of `streakline report` and `rules what-if --page` in a browser: at any width all of them is read."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.platform.objects import FolderObjects
from analytics.what_if.figures import WhatIfQuestion
from analytics.what_if.summary import summary
from analytics.what_if.what_if import what_if
from local.operate.html_report import MART_PLOTS, _page, live_plots
from local.what_if.page import page as what_if_page
from rules.book.document import read_book
from tests.browser.conftest import shoot
from tests.browser.test_page import all_violations
from tests.support.effort import effort
from tests.support.what_if_story import WhatIfStory

pytestmark = pytest.mark.xdist_group("browser")
TYPES = ("CHALLENGE_COMPLETED", "LESSON_COMPLETED", "QUESTION_ANSWERED", "PURCHASE_COMPLETED")
NIGHT = f"""# Run r

Made at 2026-11-27T14:04:55.138678+00:00.

## Root over all ledgers

| what | value |
| --- | --- |
| root | {"0a1b" * 16} |
| accounts | 66 |

## Differences

| user | table | date | attribute | stored | expected |
| --- | --- | --- | --- | --- | --- |
| crowd-0007 | DailyActivity | 2026-11-20 | events_count | 3 | 4 |

## Failed tests

None.
"""
# Texts of plots that cover another or leave their figure, and tables that are wider than their place.
UNREADABLE = """() => [...document.querySelectorAll("figure")].flatMap((figure) => {
  const frame = figure.getBoundingClientRect();
  const boxes = [...figure.querySelectorAll("svg text")].map((each) => [each.textContent, each.getBoundingClientRect()]);
  const covered = boxes.flatMap(([one, a], place) => boxes.slice(place + 1).filter(([, b]) =>
    a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3).map(([other]) => [one, other]));
  const outside = boxes.filter(([, box]) => box.left < frame.left || box.right > frame.right || box.height < 11);
  const cut = [...figure.querySelectorAll(".scroll")].filter((each) => each.scrollWidth > each.clientWidth + 1);
  return [...covered, ...outside, ...cut.map((each) => each.textContent)];
})"""


def a_report() -> str:
    dates = [date(2026, 8, 1) + timedelta(days=day) for day in range(70)]
    days = [
        {"activity_date": str(day), "points_by_cap": dict.fromkeys(TYPES, 6812 * place)}
        for place, day in enumerate(dates)
    ]
    marts = [
        plot.draw(
            [
                {
                    plot.name: day if plot.is_dated else f"first_{day}",
                    **dict.fromkeys(plot.series.values(), 0.38),
                }
                for day in dates[-40:]
            ]
        )
        for plot in MART_PLOTS
    ]
    return _page(
        [("66", "users")], [("Now", live_plots([{"longest_streak": 365}], days)), ("Marts", marts)], NIGHT
    )


def a_prediction(folder: Path) -> str:
    story, objects = WhatIfStory(26), FolderObjects(folder)
    story.into(objects)
    question = WhatIfQuestion(read_book(story.some_book()), story.now)
    return what_if_page(summary(what_if(objects, question), "book.yaml"))


@pytest.mark.parametrize(
    ("scheme", "width"),
    [("dark", 320), ("light", 1280), ("light", 375)][: effort(1, soak=3)],
)
def test_all_of_a_file_is_read_at_any_width(browser: Any, tmp_path: Path, scheme: str, width: int) -> None:
    for name, text in (("report", a_report()), ("prediction", a_prediction(tmp_path / "lake"))):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page = context.new_page()
        page.set_content(text)
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate(UNREADABLE) == []
        assert all_violations(page) == []
        shoot(page, f"{name}-{scheme}-{width}")
        context.close()
