"""`streakline report`: what it says of the last night."""

import json
import os
import re
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from adapters.platform.objects import FolderObjects
from analytics.lake.layout import report_key
from local.operate.html_report import _page, last_night, live_plots, night_html
from local.plots import Figure, bars, columns, lines, share, spoken, whole

TOLD: dict[str, Any] = {
    "error": None,
    "made_at": "2026-03-10T03:00:00+00:00",
    "different": [],
    "is_whole": True,
    "unrepaired": [],
    "counts": {},
}


def tell(lake: FolderObjects, root: Path, run: str, age_seconds: int, text: str | None = "# Run\n") -> None:
    """Store a run's report, written so long ago. text: for people; None: that was not written."""
    key = report_key(run, "json")
    lake.put(key, json.dumps({**TOLD, "run_id": run}).encode())
    os.utime(root / key, (2_000_000_000 - age_seconds,) * 2)
    if text is not None:
        lake.put(report_key(run, "md"), text.encode())


def test_before_the_first_night_it_says_so(tmp_path: Path) -> None:
    assert "no nightly run yet" in last_night(FolderObjects(tmp_path))


def test_the_newest_night_is_shown_whatever_it_is_called(tmp_path: Path) -> None:
    lake = FolderObjects(tmp_path)
    tell(lake, tmp_path, "z-older", 60, "# Run z-older\n")
    tell(lake, tmp_path, "a-newer", 0, "# Run a-newer\n\n| ann | differs |\n")
    assert last_night(lake) == "# Run a-newer\n\n| ann | differs |\n"


def test_a_night_that_left_only_figures_is_named(tmp_path: Path) -> None:
    lake = FolderObjects(tmp_path)
    tell(lake, tmp_path, "cut-off", 0, None)
    assert "cut-off" in last_night(lake)


def test_what_a_night_says_is_text_in_the_page() -> None:
    for text in (
        "{}",
        "## {}\n\n| {} | b |\n| --- | --- |\n| c | {} |",
        "## {}\n\nNone.",
        "## T\n\n- {}",
        "# {}",
    ):
        page = _page([], [], text.replace("{}", "<script>alert(1)</script> & |"))
        assert "<script>" not in page
    assert "<p>&lt;script&gt; &amp;</p>" in _page([], [], "<script> &")


def test_what_a_night_found_is_a_table_and_what_is_clean_a_list() -> None:
    page = night_html(
        '# Run r\n\nMade at 2026-11-27T14:04:55.138678+00:00.\n\n**It failed:** "x"\n\n'
        "## Differences\n\n| user | field |\n| --- | --- |\n| ann |  |\n| bob | current_streak |\n\n"
        "## Failed tests\n\nNone.\n\n## Ledger and lake disagree\n\nNone.\n\n## Waits\n\nTwo wait.\n"
    )
    assert "<p>Made at 2026-11-27 14:04 UTC.</p>" in page
    assert "<b>It failed:</b>" in page
    assert "<summary>2 checks found nothing wrong</summary>" in page
    assert "<li>Failed tests</li><li>Ledger and lake disagree</li>" in page
    assert '<tr><th scope="row">ann</th><td class="text" data-label="field">none</td></tr>' in page
    assert '<tr><th scope="row">bob</th><td class="text" data-label="field">current streak</td></tr>' in page
    assert "<h3>Waits</h3><p>Two wait.</p>" in page
    assert "nothing wrong" not in night_html("# Run r\n\n## Waits\n\nTwo wait.\n")


def test_two_points_make_no_picture_and_the_figure_says_so() -> None:
    for number in range(1, 5):
        names = [f"2026-03-0{day}" for day in range(1, number + 1)]
        drawn = columns("People", "Many.", names, {"people": range(number)})
        assert bool(drawn.svg) is (number >= 3)
        assert (f"Too little for a picture yet: {number} of 3 dates." in drawn.sentence) is (number < 3)
        assert [row[0] for row in drawn.rows] == names, "the table has all of them"


def test_what_is_under_the_pointer_says_itself_and_names_are_text() -> None:
    odd = "<script>alert(1)</script> & more"
    drawn = columns(odd, odd, [odd, "2026-03-02", "2026-03-03"], {odd: [0, 0, 0], "b": [1, 2, 3]})
    page = _page([], [("Section", [drawn])], "")
    assert "<script>" not in page
    assert "<title>2026-03-02: 0 &lt;script&gt;alert(1)&lt;/script&gt; &amp; more, 2 b</title>" in drawn.svg
    assert [share(each) for each in (0, 0.004, 0.05, 0.5, 1)] == ["0%", "0.4%", "5%", "50%", "100%"]


def test_a_line_says_the_figures_of_the_name_under_the_pointer() -> None:
    """The areas of all names cover the plot and do not overlap, so the pointer meets exactly one."""
    shares = {"before": [1.0, 0.75, 0.375], "after": [1.0, 0.5, 0.25]}
    svg = lines("Runs", "", ["1", "2", "<3>"], shares, head="Days").svg
    titles = re.findall(r"<title>(.*?)</title>", svg)
    assert titles == [
        "1: before 100%, after 100%",
        "2: before 75%, after 50%",
        "&lt;3&gt;: before 38%, after 25%",
    ]
    areas = re.findall(r'class="hit" x="([\d.]+)%" y="[\d.]+" width="([\d.]+)%"', svg)
    assert areas == [("0.00", "25.00"), ("25.00", "50.00"), ("75.00", "25.00")]


def test_an_axis_has_round_numbers_up_to_its_highest_column() -> None:
    for highest, shown, ticks in (
        (46, whole, ["0", "20", "40", "60"]),
        (6812, whole, ["0", "2,000", "4,000", "6,000", "8,000"]),
        (1, whole, ["0", "1"]),
        (0, whole, ["0", "1"]),
        (0.38, share, ["0%", "10%", "20%", "30%", "40%"]),
        (1, share, ["0%", "50%", "100%"]),
        (0.03, share, ["0%", "1%", "2%", "3%"]),
    ):
        drawn = columns(
            "T", "", ["2026-03-01", "2026-03-02", "2026-03-03"], {"n": [highest] * 3}, shown=shown
        )
        assert re.findall(r'text-anchor="end">(.*?)<', drawn.svg) == ticks


def test_the_last_date_is_named_and_texts_are_never_scaled() -> None:
    for number in (3, 4, 7, 60, 180):
        names = [str(date(2026, 6, 1) + timedelta(days=day)) for day in range(number)]
        drawn = columns("T", "", names, {"n": [1] * number})
        named = re.findall(r'text-anchor="middle">(.*?)<', drawn.svg)
        last = date.fromisoformat(names[-1])
        assert named[0] == f"{last.day} {last:%b}"
        assert len(named) <= 4
        assert "viewBox" not in drawn.svg


def test_each_category_has_its_name_and_its_value() -> None:
    drawn = bars("T", "", ["<a>", spoken("LESSON_COMPLETED")], {"n": [0, 1200]}, head="Type")
    assert re.findall(r"<text[^>]*>(.*?)</text>", drawn.svg) == [
        "&lt;a&gt;",
        "0",
        "Lesson completed",
        "1,200",
    ]
    assert drawn.rows == [("<a>", "0"), ("Lesson completed", "1,200")]


def test_a_phone_shows_a_row_of_a_wide_table_as_a_block() -> None:
    for rows, is_wide in (([("a", "1", "2 → 3")], False), ([("a", "1", "x")], True), ([("a", *"123")], True)):
        page = Figure("T", "", ("", "b", "c", "d")[: len(rows[0])], rows).html()
        assert ('class="wide"' in page) is is_wide
        assert 'data-label="c"' in page


def test_the_live_tables_are_counted() -> None:
    days = [
        {"user_id": user, "activity_date": day, "events_count": 1, "points_by_cap": {"CHECK_IN": points}}
        for user, day, points in (
            ("ann", "2026-03-01", 5),
            ("ann", "2026-03-02", 5),
            ("bob", "2026-03-02", 0),
            ("bob", "2026-03-04", 0),
        )
    ]
    daily, lengths, points = live_plots([{"longest_streak": 2}, {}], days)
    assert daily.rows == [("2026-03-01", "1"), ("2026-03-02", "2"), ("2026-03-03", "0"), ("2026-03-04", "1")]
    assert lengths.rows == [("1", "1"), ("2", "1")]
    assert points.rows == [("Check in", "10")]
    assert live_plots([], []) == []
