"""What-if as text and as a page, from a lake of a few users; and a book that is none."""

import json
import re
from datetime import UTC, datetime
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import click
import pytest

from adapters.platform.objects import FolderObjects
from analytics.what_if.figures import RunLengths, WhatIfAnswer, WhatIfQuestion
from analytics.what_if.summary import summary
from analytics.what_if.what_if import what_if
from local.plots import bars
from local.plots import lines as plot_lines
from local.what_if.lines import lines
from local.what_if.page import page
from local.what_if.what_if_command import ask, what_if_command
from rules.book.document import read_book
from tests.support.what_if_goals import GoalWhatIfStory
from tests.support.what_if_story import WhatIfStory

VOID = {"meta"}


class Elements(HTMLParser):
    """The elements of a page, and whether each is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@cache
def found() -> WhatIfAnswer:
    story, objects = WhatIfStory(26), FolderObjects(Path(mkdtemp()))
    story.into(objects)
    return what_if(objects, WhatIfQuestion(read_book(story.some_book()), story.now))


def test_the_page_needs_nothing_else_and_tells_what_its_plots_show() -> None:
    told = page(summary(found(), "<b>book</b> & co.yaml"))
    read = Elements()
    read.feed(told)
    assert read.open == []
    tags = [tag for tag, _ in read.seen]
    assert not {"script", "link", "img", "iframe", "b"} & set(tags)
    assert not re.search(r"https?://|url\(|@import", told)
    drawn = [given for tag, given in read.seen if tag == "svg"]
    assert len(drawn) == 4
    for each in drawn:
        assert (each["role"], bool(each["aria-label"])) == ("img", True)
    assert tags.count("details") == len(drawn), "a table behind each plot"
    assert sum(given.get("class") == "scroll" for _, given in read.seen) == tags.count("table")
    assert "width=device-width" in told
    assert "<b>book</b> & co.yaml" in " ".join(read.texts)
    assert "max-width" in told.partition("<style>")[2]
    texts = " ".join(read.texts)
    assert "UTC from" in texts
    assert "in force all along" in texts
    assert not re.search(r"\dT\d\d:", texts), "people read no RFC 3339"
    assert "+0" not in read.texts


@cache
def found_with_goals() -> WhatIfAnswer:
    story, objects = GoalWhatIfStory(2), FolderObjects(Path(mkdtemp()))
    story.into(objects)
    return what_if(objects, WhatIfQuestion(read_book(story.some_book()), story.now))


def test_streaks_and_achievements_that_differ_are_told_in_text_json_and_page() -> None:
    told = json.loads(json.dumps(summary(found_with_goals(), "book.yaml")))
    streaks, achievements = told["goals"]["streaks"], told["goals"]["achievements"]
    assert {each["change"] for each in streaks} >= {"new"}
    assert achievements
    text, read = "\n".join(lines(told)), Elements()
    read.feed(page(told))
    cells = " ".join(read.texts)
    for each in streaks:
        one = f"reached {each['before']['reached']:,} -> {each['after']['reached']:,}, now {each['before']['current']:,}"
        (line,) = [line for line in text.splitlines() if line.strip().startswith(f"{each['name']} ")]
        assert each["change"] in line
        assert one in line
        assert f"{each['before']['longest']:,} → {each['after']['longest']:,}" in cells
    assert any(each["after"]["current"] for each in streaks)
    for each in achievements:
        (line,) = [line for line in text.splitlines() if line.strip().startswith(f"{each['name']} ")]
        assert f"{each['before']:,} -> " in line
        assert each["title"] in cells
    assert read.open == []
    plain = "\n".join(lines(summary(found(), "book.yaml")))
    assert "differ" not in plain, "what is the same is not told"


def test_text_and_json_say_the_same() -> None:
    told = summary(found(), "book.yaml")
    text = "\n".join(lines(json.loads(json.dumps(told))))
    points, users = told["points"], told["users"]
    assert f"{points['before']:,} -> " in text
    assert f"gain {users['gain']:,}, lose {users['lose']:,}, same {users['same']:,}" in text
    of_class = sum(each["users"] for each in users["by_change"])
    assert users["gain"] + users["lose"] + users["same"] == users["all"] == of_class
    assert f"would not have been possible: {told['impossible']['all']:,} of" in text
    for row in told["largest_changes"]:
        assert row["user_id"] in text
        of_events = [each for each in row["why"] if each[0] in "+-"]
        changes = sum(int(each.split(" points")[0].replace(",", "")) for each in of_events)
        assert changes == row["earned_after"] - row["earned_before"], "the reasons add up"


def test_another_start_of_the_day_is_said_to_be_left_out() -> None:
    story, objects = WhatIfStory(26), FolderObjects(Path(mkdtemp()))
    story.into(objects)
    book = {**story.some_book(), "daily": {"day_starts_at": "03:00"}}
    figures = summary(what_if(objects, WhatIfQuestion(read_book(book), story.now)), "late.yaml")
    (sentence,) = figures["limits"]
    assert "start of the day" in sentence
    assert sentence in list(lines(figures))
    assert sentence in page(figures)
    assert summary(found(), "book.yaml")["limits"] == []


def test_runs_survive_by_kaplan_and_meier() -> None:
    """Four runs: of 1 and 3 days, which ended; of 2 and 3, which go on."""
    runs = RunLengths()
    runs.ended.update([1, 3])
    runs.alive.update([2, 3])
    assert runs.survival((1, 2, 3, 4)) == {1: 1.0, 2: 0.75, 3: 0.75, 4: 0.375}
    assert RunLengths().survival((1, 2)) == {1: 1.0, 2: 1.0}


def test_a_plot_of_nothing_is_drawn() -> None:
    for names, values in (["a"], [0.0]), ([], []):
        series = {"before": values, "after": values}
        assert "<svg" in bars("None", "nothing", names, series).svg
        assert "<svg" in plot_lines("None", "nothing", names, series, head="Days").svg


def test_a_book_that_is_none_is_told_by_line(tmp_path: Path) -> None:
    path = tmp_path / "book.yaml"
    path.write_text("format: 1\nevent_types:\n  READ:\n    points: 5\n    cap: {points: 3, per: day}\n")
    lake, now = FolderObjects(tmp_path / "lake"), datetime(2027, 1, 1, tzinfo=UTC)
    with pytest.raises(RuntimeError, match=r"^book\.yaml:5: event_types\.READ\.cap\.points is below"):
        ask(lake, str(path), now)
    path.write_text("format: 1\nevent_types: {READ: {points: 5}}\n")
    assert ask(lake, str(path), now, now)[1].users.num_rows == 0
    assert ask(lake, "in-force", now)[0] == "the book as it was"
    with pytest.raises(RuntimeError, match="--from must be before --to"):
        ask(lake, str(path), now, since=now, until=now)
    with pytest.raises(RuntimeError, match="in-force has no span"):
        ask(lake, "in-force", now, since=now)
    with pytest.raises(click.BadParameter, match="tomorrow: no day"):
        what_if_command.make_context("what-if", [str(path), "--to", "tomorrow"])
