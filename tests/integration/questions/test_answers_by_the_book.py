"""What answers earn follows the book of rules, through door, stream and stats, while versions are published."""

import copy
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from adapters import book_store
from adapters.book_store import BookStore, Publication, shipped_document
from adapters.platform.aws import client
from adapters.platform.items import decode_item
from rules.questions.answer_stats import fold_responses
from rules.questions.responses import from_item
from tests.support.engine import Engine
from tests.support.memory import forget
from tests.support.questions import stack
from tests.support.questions.answer_stream import deliver, records
from tests.support.questions.stack import answer, ask, call, prepared, requests, responses_of, set_clock

HOUR = timedelta(hours=1)
# The noon of a date that has not begun anywhere yet.
NOON = datetime.combine(datetime.now(UTC).date(), time(12), UTC) + timedelta(days=2)
TIMED: Any = {"response_time_ms": 2_000, "timezone": "UTC"}


@pytest.fixture(autouse=True)
def settings(engine: Engine) -> Iterator[None]:
    """Processes that know a version at once. All versions are gone afterwards."""
    with prepared(engine), pytest.MonkeyPatch.context() as patch:
        patch.setattr(book_store, "FRESH_SECONDS", 0)
        yield
        dynamodb = client("dynamodb")
        for each in dynamodb.scan(TableName="RuleBooks")["Items"]:
            dynamodb.delete_item(TableName="RuleBooks", Key={key: each[key] for key in ("book", "version")})
    forget()


def publish(at: datetime, said: dict[str, Any] | None, effective: datetime | None = None) -> None:
    document = copy.deepcopy(shipped_document())
    del document["answers"]
    store = BookStore(client("dynamodb"), "RuleBooks")
    store.look()
    document |= {"answers": said} if said else {}
    store.publish(Publication(document, effective or at, at, "ann", ""))


class Person:
    """Somebody who answers one question after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.name, self.patch = f"u-{uuid.uuid4()}", monkeypatch
        self.stored: list[dict[str, Any]] = []

    def answer(self, at: datetime) -> tuple[int, dict[str, int], int]:
        """Answer a new question at an instant; returns points, points_for, and the cap that is stored."""
        question = ask(closes_at=(at + HOUR).isoformat())
        set_clock(self.patch, at)
        receipt = answer(question, self.name, **TIMED).body
        (stored,) = responses_of(question["question_id"])
        assert decode_item(stored)["points"] == receipt["points"] == sum(receipt["points_for"].values())
        self.stored.append(stored)
        return receipt["points"], receipt["points_for"], decode_item(stored)["day_points_max"]

    def total(self) -> int:
        """The points that the stats show, which are those of all answers."""
        assert deliver(records(self.stored)) == []
        shown = call("GET", "/v1/stats/me", sub=self.name).body["total_points"]
        assert fold_responses(from_item(decode_item(each)) for each in self.stored).total_points == shown
        return int(shown)


def test_an_answer_is_judged_by_the_version_in_force_and_its_date_by_the_one_that_it_began_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ann = Person(monkeypatch)
    assert ann.answer(NOON) == (15, {"answer": 10, "confidence": 3, "timing": 2}, 150)
    publish(NOON + HOUR, {"points": 20, "day_points_max": 30})
    two = (20, {"answer": 20}, 150)
    assert [ann.answer(NOON + hours * HOUR) for hours in (2, 3)] == [two, two], "the date began under 150"
    tomorrow = NOON + timedelta(days=1)
    assert ann.answer(tomorrow)[2] == 150, "that began in Kiritimati two hours before"
    capped = (20, {"answer": 20}, 30)
    assert [ann.answer(tomorrow + hours * HOUR) for hours in (24, 25)] == [capped, capped]
    assert ann.total() == 15 + 20 + 20 + 20 + 30


def test_a_book_without_the_section_gives_0_and_loses_no_date_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bob = Person(monkeypatch)
    publish(NOON - 72 * HOUR, None)
    assert bob.answer(NOON) == (0, {"answer": 0}, 1295)
    publish(NOON + HOUR, {"points": 7, "day_points_max": 10})
    assert bob.answer(NOON + 2 * HOUR) == (7, {"answer": 7}, 1295)
    assert bob.answer(NOON + 48 * HOUR) == (7, {"answer": 7}, 10)
    assert bob.total() == 14


def test_a_version_that_takes_effect_in_the_past_leaves_begun_dates_and_stored_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cat = Person(monkeypatch)
    assert cat.answer(NOON)[0] == 15
    publish(NOON + HOUR, {"points": 1, "day_points_max": 2}, effective=NOON - 100 * HOUR)
    assert cat.answer(NOON + 2 * HOUR) == (1, {"answer": 1}, 150)
    assert cat.total() == 16


def test_the_book_costs_no_read_per_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book_store, "FRESH_SECONDS", 30)
    monkeypatch.setattr(stack, "PER_PROCESS", (b'"Erasures"',))
    question = ask()
    assert answer(question, "eve").status == 201
    with requests() as seen:
        assert answer(question, "fay").status == 201
    assert seen.operations == ["GetItem", "BatchGetItem", "TransactWriteItems"]  # the user's zone
