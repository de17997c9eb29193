"""What `rules publish` says of new streaks and achievements is what readers do (rules 14 and 15)."""

import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from adapters.book_store import shipped_document
from rules.book.book import Books, Version
from rules.book.document import read_book
from rules.book.goal_rules import NeedKind
from rules.engagement.goals import beginnings, midnight, rule_of_period, streak_beginning
from tests.support.effort import effort
from tests.support.goal_story import GoalStory
from tests.support.published_books import Table
from tests.support.typed_command import typed

THURSDAY = datetime(2026, 11, 26, 9, 12, 30, tzinfo=UTC)
WEEKLY = {"per": "week", "needs": {"events": 2}, "event_types": ["READ"]}
MINUTES = WEEKLY | {"needs": {"sum": {"property": "minutes", "at_least": 30}}}


def book(**said: Any) -> dict[str, Any]:
    made = {
        name: each for name, each in shipped_document().items() if name not in ("streaks", "achievements")
    }
    minutes = {"type": "number", "minimum": 0, "maximum": 600}
    read = {"points": 5, "properties": {"properties": {"minutes": minutes}}}
    return made | {"event_types": {**made["event_types"], "READ": read}} | said


def told(*documents: dict[str, Any], at: datetime = THURSDAY, published: datetime | None = None) -> list[str]:
    """What is said of the last of some documents; those before it are in force since a year."""
    versions = [
        Version(number, at - timedelta(days=365), lambda said=said: read_book(said))  # type: ignore[misc]
        for number, said in enumerate(documents[:-1], start=1)
    ]
    newest = Version(len(documents), at, lambda: read_book(documents[-1]), published or at)
    return list(beginnings(Books([*versions, newest]), newest))


def test_a_streak_is_counted_from_when_it_is_declared_where_nothing_was_counted_before() -> None:
    week = "weekly_reader: first period 2026-11-23 to 2026-11-29, counted from"
    assert told(book(), book(streaks={"weekly_reader": WEEKLY})) == [f"{week} 2026-11-26 09:12 UTC"]
    assert told(book(), book(streaks={"weekly_reader": WEEKLY}), at=midnight(THURSDAY.date())) == [
        f"{week} 2026-11-26"
    ]
    assert told(book(), book(streaks={"monthly": WEEKLY | {"per": "month"}})) == [
        "monthly: first period 2026-11-01 to 2026-11-30, counted from 2026-11-26 09:12 UTC"
    ]


def test_a_version_before_another_one_is_in_force_only_until_that_one() -> None:
    """Whoever undoes a version takes its very instant: from any earlier one the undone version comes back."""
    wrong = Version(2, THURSDAY, lambda: read_book(book()))

    def undone(at: datetime) -> tuple[list[str], int]:
        again = Version(3, at, lambda: read_book(book()), THURSDAY + timedelta(days=1))
        books = Books([Version(1, at - timedelta(days=365), lambda: read_book(book())), wrong, again])
        return list(beginnings(books, again)), books.at(THURSDAY + timedelta(hours=1)).number

    assert undone(THURSDAY - timedelta(seconds=1)) == (
        ["in force until 2026-11-26T09:12:30.000000Z, when version 2 takes effect"],
        2,
    )
    assert undone(THURSDAY) == ([], 3)


def test_a_streak_is_counted_from_the_period_s_beginning_where_the_book_counted_already() -> None:
    before = book(streaks={"daily_reader": WEEKLY | {"per": "day"}})
    both = {**before["streaks"], "weekly_reader": WEEKLY}
    week = "weekly_reader: first period 2026-11-23 to 2026-11-29, counted from"
    assert told(before, book(streaks=both)) == [f"{week} 2026-11-23"]
    summed = {**before["streaks"], "weekly_reader": MINUTES}
    assert told(before, book(streaks=summed)) == [f"{week} 2026-11-26 09:12 UTC"], "no minutes were summed"
    assert told(before, book(streaks=both), at=datetime(2026, 11, 30, tzinfo=UTC)) == [
        "weekly_reader: first period 2026-11-30 to 2026-12-06, counted from 2026-11-30"
    ]


def test_what_takes_effect_in_the_past_counts_what_was_counted() -> None:
    past, now = THURSDAY - timedelta(days=9), THURSDAY
    assert told(book(), book(streaks={"weekly_reader": WEEKLY}), at=past, published=now) == [
        "weekly_reader: first period 2026-11-23 to 2026-11-29, counted from 2026-11-26 09:12 UTC"
    ]
    before = book(streaks={"daily_reader": WEEKLY | {"per": "day"}})
    both = book(streaks={**before["streaks"], "weekly_reader": WEEKLY})
    assert told(before, both, at=past, published=now) == [
        "weekly_reader: first period 2026-11-16 to 2026-11-22, counted from 2026-11-16"
    ]


def test_changes_and_achievements_are_told_and_what_stays_is_not() -> None:
    old = book(
        streaks={"weekly_reader": WEEKLY, "daily_reader": WEEKLY | {"per": "day"}},
        achievements={"kept": {"all": [{"count": "READ", "at_least": 9}]}},
    )
    new = copy.deepcopy(old)
    new["streaks"]["weekly_reader"]["needs"] = {"events": 3}
    new["achievements"] |= {
        "bookworm": {"all": [{"count": "READ", "at_least": 100}], "history": True},
        "rich": {"any": [{"points_earned": 1000}]},
    }
    assert told(old, new) == [
        "weekly_reader: changed for periods from 2026-11-30 on",
        "bookworm: all of history counts, and may date it",
        "rich: dated at 2026-11-26 or later; what happened before counts towards it",
    ]
    new["achievements"]["kept"]["all"][0]["at_least"] = 10
    assert told(old, new)[1] == (
        "kept: changed; dated at 2025-11-26 or later; what happened before counts towards it"
    )
    assert told(old, old) == []


def additions(story: GoalStory) -> Iterator[tuple[Books, Version, str]]:
    """Each streak that a version adds, with the versions that were published before it."""
    for version in story.books.versions[1:]:
        before = Books(each for each in story.books.versions if each.number < version.number)
        for name in version.book.streaks.keys() - before.at(version.effective_at).book.streaks.keys():
            yield before, version, name


@pytest.mark.parametrize("seed", range(effort(3, soak=60)))
def test_from_the_instant_on_all_that_a_streak_needs_is_measured_and_not_before(seed: int) -> None:
    seen = 0
    for before, version, name in additions(GoalStory(seed)):
        rule = version.book.streaks[name]
        found = streak_beginning(before, version, rule)
        books = Books([*before.versions, version])
        asked = rule_of_period(books, name, found.first)
        assert asked is not None

        def measures(at: datetime, books: Books = books, rule: Any = rule) -> bool:
            judge = books.at(at).book
            known = [judge.measured(each) for each in rule.event_types if each in judge.event_types]
            is_sum = rule.need.kind is NeedKind.SUM
            return all(each is not None and (not is_sum or rule.need.property in each) for each in known)

        hours = (version.effective_at - found.counted_from) // timedelta(hours=1)
        assert all(measures(found.counted_from + timedelta(hours=each)) for each in range(hours))
        if found.counted_from > midnight(found.first):
            assert not measures(found.counted_from - timedelta(microseconds=1))
        seen += 1
    assert seen > 10


class Stack:
    """The one table that `rules` needs."""

    def __init__(self) -> None:
        self.table = Table()
        self.tables = {"RuleBooks": "RuleBooks"}

    def client(self, _: str) -> Table:
        return self.table


def run(stack: Stack, *words: str) -> None:
    typed(stack, "rules", *words, *([] if words[0] == "diff" else ["--json"]))


def test_publish_is_for_now_unless_it_says_otherwise_and_tells_from_when_each_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack, file = Stack(), tmp_path / "book.yaml"
    document = copy.deepcopy(shipped_document())
    document["streaks"]["weekly_reader"] = WEEKLY | {"event_types": ["LESSON_COMPLETED"]}
    file.write_text(yaml.safe_dump(document))
    started = datetime.now(UTC)
    run(stack, "publish", str(file))
    first = json.loads(capsys.readouterr().out)
    assert started <= datetime.fromisoformat(first["effective_at"]) <= datetime.now(UTC)
    assert first["beginnings"][0].startswith("weekly_reader: first period ")
    run(stack, "publish", str(file), "--effective", "2999-01-01")
    planned = json.loads(capsys.readouterr().out)
    assert (planned["effective_at"], planned["beginnings"]) == ("2999-01-01T00:00:00.000000Z", [])
    run(stack, "publish", str(file), "--effective", "2999-01-02T01:00:00+01:00")
    assert json.loads(capsys.readouterr().out)["effective_at"] == "2999-01-02T00:00:00.000000Z"
    run(stack, "publish", str(file), "--effective", "now")
    capsys.readouterr()
    run(stack, "show", "--at", "2999-01-01")
    assert "weekly_reader" in capsys.readouterr().out
    with pytest.raises(RuntimeError, match="in the past: 2026-01-01T00:00:00"):
        run(stack, "publish", str(file), "--effective", "2026-01-01")


@pytest.mark.parametrize(
    "text", ["2026-11-31", "tomorrow", "2026-11-01T10:00:00", "20261101", "２０２６-11-01"]
)
def test_another_instant_is_refused_with_what_is_taken(text: str, tmp_path: Path) -> None:
    (file := tmp_path / "book.yaml").touch()
    with pytest.raises(click.BadParameter) as refused:
        run(Stack(), "publish", str(file), "--effective", text)
    said = refused.value.format_message()
    assert "--effective" in said
    assert "a date (midnight UTC), or an instant with its zone" in said


def test_differences_are_written_as_yaml_and_never_as_python(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack, file = Stack(), tmp_path / "book.yaml"
    document = copy.deepcopy(shipped_document())
    document["achievements"]["new"] = {
        "all": [{"count": "LESSON_COMPLETED", "at_least": 1}],
        "history": True,
        "title": "Yes, no",
    }
    document["event_types"]["CHECK_IN"]["keeps_streak"] = False
    document["event_types"]["CHECK_IN"]["properties"] = {
        "properties": {"of": {"enum": ["1", 1, None, 0.5, "a"]}}
    }
    document["boosts"] = [{"since": "2027-01-01T00:00:00Z", "until": "2027-01-02T00:00:00Z", "factor": 2}]
    file.write_text(yaml.safe_dump(document))
    run(stack, "diff", str(file))
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        'achievements.new: new: {all: [{at_least: 1, count: LESSON_COMPLETED}], history: true, title: "Yes, no"}',
        "boosts: new: [{factor: 2, since: 2027-01-01T00:00:00Z, until: 2027-01-02T00:00:00Z}]",
        "event_types.CHECK_IN.keeps_streak: new: false",
        'event_types.CHECK_IN.properties: new: {properties: {of: {enum: ["1", 1, null, 0.5, a]}}}',
    ]
