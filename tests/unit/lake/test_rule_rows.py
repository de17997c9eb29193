"""Each version of the book is in the lake, item by item; and all of a version comes again, or none of it."""

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.book_store import shipped_document
from adapters.platform import publishing
from adapters.platform.items import decode_item, encode_item
from adapters.platform.publishing import DeliveryStream
from processors.batches import BatchResult
from processors.publisher import Publisher
from rules.book.book import Book
from rules.book.document import read_book
from rules.lake.entities import RULES, rows_of
from rules.lake.packed_records import row_texts
from rules.lake.rule_entities import book_of
from rules.lake.valid_row import read_row
from tests.support.firehose import Firehose
from tests.support.published_books import AT, a_document, documents, published

ARRIVED = AT + timedelta(seconds=5)


def rows(attributes: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return an item's rows by their `item`, as curation reads the published lines."""
    read = [
        read_row(json.dumps(row).encode(), RULES, row["dt"], row["hour"])
        for row in rows_of(RULES, attributes, ARRIVED)
    ]
    assert [each.pop("extra") for each in read] == [None] * len(read), "all has a column, or is left out"
    return {each["item"]: each for each in read}


def test_types_boosts_and_the_rest_are_rows() -> None:
    shipped, second = documents(published(a_document()))
    found = rows(second)
    assert list(found) == [
        "event_type/A_B",
        "event_type/READ",
        "event_type/WALK",
        "boost/0",
        "boost/1",
        "streak/pages",
        "streak/walks",
        "achievement/reader/0",
        "achievement/reader/1",
        "achievement/starter/0",
        "level/zealot",
        "level/apostle",
        "book",
    ]
    for each in found.values():
        assert (each["version"], each["effective_at"], each["published_at"]) == (2, AT, AT)
        assert (each["author"], each["note"], each["stored_at"]) == ("ann", 'a, "better"\nbook', ARRIVED)
    read, walk, boost = found["event_type/READ"], found["event_type/WALK"], found["boost/1"]
    assert (read["points"], read["cap_points"], read["cap_events"], read["per"]) == (5, 20, None, "week")
    assert (read["property"], read["points_each"], read["points_earned"]) == ("pages", 2500, 3)
    assert (walk["property"], walk["points_each"], walk["points_earned"]) == (None, None, None)
    assert (walk["cap_events"], walk["per"], walk["keeps_streak"]) == (2, "day", False)
    assert read["keeps_streak"], "a type whose document does not say so keeps it"
    assert (found["event_type/A_B"]["per"], found["event_type/A_B"]["declared_by"]) == (None, "server")
    assert (boost["event_types"], boost["factor"]) == ("A_B,WALK", 3)
    assert found["boost/0"]["since"] == datetime(2026, 3, 27, 23, tzinfo=UTC)
    of_sum, of_streak = found["achievement/reader/0"], found["achievement/reader/1"]
    assert (of_sum["need"], of_sum["at_least"], of_sum["property"]) == ("sum", 70_500, "pages")
    assert (of_streak["streak"], of_streak["combined"], of_streak["of_history"]) == ("pages", "all", True)
    assert (found["achievement/starter/0"]["combined"], found["achievement/starter/0"]["stays"]) == (
        "any",
        False,
    )
    levels = (found["level/zealot"], found["level/apostle"])
    assert [(each["name"], each["at_least"], each["title"]) for each in levels] == [
        ("zealot", 0, None),
        ("apostle", 10, 'An "apostle"'),
    ]
    pages, walks = found["streak/pages"], found["streak/walks"]
    assert (pages["per"], pages["need"], pages["at_least"]) == ("month", "sum", 30_500)
    assert (pages["property"], pages["event_types"], pages["covered_by"]) == ("pages", "READ", None)
    assert (walks["need"], walks["event_types"], walks["covered_by"]) == (
        "active_days",
        "A_B,READ",
        "freezes,pauses",
    )
    assert json.loads(found["book"]["document"]).keys() == {"freezes", "repairs", "pauses"}
    assert rows(shipped).keys() == {
        *(f"event_type/{name}" for name in shipped_document()["event_types"]),
        *(f"streak/{name}" for name in shipped_document()["streaks"]),
        *(f"achievement/{name}/0" for name in shipped_document()["achievements"]),
        *(f"level/{level['name']}" for level in shipped_document()["levels"]),
        "book",
    }


def test_the_shipped_book_is_stored_at_the_first_publication_and_lies_there() -> None:
    shipped = rows_of(RULES, documents(published(a_document()))[0], ARRIVED)[0]
    assert (shipped["version"], shipped["published_at"]) == (1, "1970-01-01T00:00:00.000000Z")
    assert (shipped["dt"], shipped["hour"]) == ("2026-03-02", "05")


@pytest.mark.parametrize("document", [a_document(), shipped_document()])
def test_the_rows_tell_all_of_a_book_that_points_and_goals_follow_from(document: dict[str, Any]) -> None:
    (*_, last) = documents(published(document))
    known, told = read_book(document), book_of(rows(last).values())
    types = {name: replace(rule, properties=None) for name, rule in known.event_types.items()}
    achievements = {name: replace(rule, title="") for name, rule in known.achievements.items()}
    assert told == Book(
        types, known.boosts, streaks=known.streaks, achievements=achievements, levels=known.levels
    )


def test_only_documents_are_rows() -> None:
    """The other items of the table are kept for restores (rules/lake/table_items.py)."""
    every, box = published(a_document()), Firehose()
    told = handed(box, [record(number, decode_item(each)) for number, each in enumerate(every)])
    wanted = documents(every)
    assert len(wanted) < len(every)
    assert (told.counts["published"], told.again, told.poison) == (len(wanted), [], [])
    rows = [json.loads(text) for each in box.taken for text in row_texts(each)]
    assert {row["version"] for row in rows} == {each["version"] for each in wanted}


def record(number: int, attributes: dict[str, Any]) -> dict[str, Any]:
    return {
        "eventName": "INSERT",
        "eventSourceARN": "arn:aws:dynamodb:eu-west-1:1:table/RuleBooks/stream/2026-01-01T00:00:00.000",
        "dynamodb": {
            "ApproximateCreationDateTime": ARRIVED.timestamp(),
            "NewImage": encode_item(attributes),
            "SequenceNumber": f"1{number:05}",
        },
    }


def handed(client: Firehose, records: list[Any]) -> BatchResult:
    return Publisher({"RuleBooks": [(RULES, DeliveryStream(client, "r"))]}).publish(records)


def test_of_a_version_in_several_records_all_rows_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "pauses", range)
    monkeypatch.setattr("processors.publisher.RECORD_BYTES_MAX", 3000)
    one, two = (record(number, each) for number, each in enumerate(documents(published(a_document()))))
    whole = Firehose()
    assert handed(whole, [one, two]) == BatchResult(Counter(published=2))
    assert len(whole.taken) > 2
    outcome = handed(Firehose({whole.taken[-1]: 99}), [one, two])
    assert (outcome.counts["published"], outcome.again) == (1, ["100001"])
    again = Firehose()
    handed(again, [two])  # what a redelivery sends
    assert [json.loads(text)["version"] for each in again.taken for text in row_texts(each)] == [2] * 13


def test_a_document_that_cannot_be_read_is_poison_and_its_neighbour_is_not() -> None:
    _, good = documents(published(a_document()))
    outcome = handed(Firehose(), [record(0, good | {"document": "{}"}), record(1, good)])
    assert (outcome.counts["published"], [reason for _, reason in outcome.poison]) == (
        1,
        ["KeyError: 'event_types'"],
    )
