"""A night judges the ledgers that it looks at by the book, as the lake has it."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rules.engagement.events import Event
from rules.lake.entities import RULES, rows_of
from tests.support.engine import Engine
from tests.support.published_books import AT, documents, published
from tests.support.town import KINDS, Town, lived_in

pytestmark = pytest.mark.xdist_group("reconcile")


@pytest.fixture
def town(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Town]:
    """All events say that the second version has judged them; it gives each a point, and no cap."""
    real = Town.event

    def event(self: Town, user: str, number: int, days_ago: int) -> Event:
        return replace(real(self, user, number, days_ago), rules_version=2, points_awarded=1, cap=None)

    monkeypatch.setattr(Town, "event", event)
    with lived_in(engine, tmp_path, f"b-{request.node.name}", 8) as made:
        yield made


def publish(town: Town, points: int) -> None:
    book = {"event_types": {kind: {"points": points} for kind in KINDS}}
    for each in documents(published(book)):
        for row in rows_of(RULES, each, AT):
            town.dynamodb.rows[RULES.name, row["dt"], row["hour"]].append(json.dumps(row))
    town.curate()


def test_who_earned_what_the_book_says_is_not_named(town: Town) -> None:
    publish(town, points=1)
    told = town.reconcile("one", everybody=True)
    assert (told["different"], told["disagreements"], told["frozen"]) == ([], [], [])


def test_other_points_are_told_and_nothing_follows_from_it(town: Town) -> None:
    publish(town, points=3)
    town.reconcile("before")  # streaks that have lapsed are set to 0
    before = town.tables()
    told = town.reconcile("one", everybody=True)
    assert {name for name, _ in told["disagreements"]} == set(town.users)
    assert all("points; by the book" in text for _, text in told["disagreements"])
    assert (told["different"], told["frozen"]) == ([], [])
    assert town.tables() == before


def test_without_the_version_nothing_is_told(town: Town) -> None:
    assert town.reconcile("one", everybody=True)["disagreements"] == []
