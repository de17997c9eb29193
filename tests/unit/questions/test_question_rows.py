"""Rows of questions, responses, stats and messages: what they have, and that nobody can be told from them."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.platform.items import decode_item, encode_item
from adapters.questions.message_claims import SENDING
from adapters.questions.response_store import COUNTED
from adapters.questions.stats_items import stats_attributes
from adapters.questions.subscription_store import KEY, claim_key
from local.cloud.streams import matches
from rules.days import stamp
from rules.lake.entities import ENTITIES, FIRST_STORED, event_version, row_of
from rules.lake.pseudonyms import pseudonym
from rules.lake.valid_row import read_row
from rules.questions.answer_stats import fold_responses, person_alias
from rules.questions.lake_entities import ANSWER_STATS, NOTIFICATIONS, QUESTIONS, RESPONSES
from rules.questions.questions import Question, QuestionStatus, QuestionType
from rules.questions.questions import to_item as question_item
from rules.questions.responses import public_id, to_item
from tests.support.declared import properties
from tests.support.questions.answers import NOON, answer

HASHES = st.text("0123456789abcdef", min_size=32, max_size=32)
ARRIVED = NOON + timedelta(seconds=5)
ASKED = Question(
    *("q1", "agent", QuestionType.MULTIPLE_CHOICE, "Où?", ("größe", "b,c"), (), "general", 3, 0),
    *(
        QuestionStatus.OPEN,
        stamp(NOON),
        stamp(NOON + timedelta(days=1)),
        int(NOON.timestamp()),
        "digest",
        "key",
    ),
)


def published(entity: Any, attributes: dict[str, Any], change: str = FIRST_STORED) -> dict[str, Any]:
    """Return an item's row, as curation reads the published line."""
    row = row_of(entity, decode_item(encode_item(attributes)), ARRIVED, change)
    read = read_row(json.dumps(row).encode(), entity, row["dt"], row["hour"])
    assert read.pop("extra") is None, "every attribute has a column, or is left out"
    return read


@given(HASHES, HASHES, HASHES, st.text("xyz!", min_size=3), st.sampled_from(["Asia/Tokyo", "Europe/Rome"]))
def test_a_response_tells_nobody(own: str, older: str, upcoming: str, user: str, zone: str) -> None:
    said = replace(
        answer(1),
        fingerprint_hash=own,
        older_hashes=(older,),
        upcoming_hashes=(upcoming,),
        zone=zone,
        timezone=zone,
        selected_option=None,
        answer=f"I am {user}",
    )
    row = published(RESPONSES, to_item(said) | {COUNTED: stamp(NOON)})
    told = json.dumps(row, default=str)
    for secret in (own, older, upcoming, user, zone, person_alias(own), public_id(said.question_id, own)):
        assert secret not in told
    assert (row["person"], row["answer_characters"]) == (pseudonym(own), len(f"I am {user}"))
    assert row["is_signed_in"]
    assert not published(RESPONSES, to_item(replace(said, is_signed_in=False)))["is_signed_in"]


@given(HASHES, HASHES)
def test_stats_and_their_moves_are_under_the_pseudonyms_of_responses(own: str, newer: str) -> None:
    stats = fold_responses(
        [replace(answer(number, day=number), fingerprint_hash=own) for number in range(20)]
    )
    stored = stats_attributes(own, stats) | {"version": 2, "updated_at": stamp(NOON), "older_hashes": [newer]}
    row = published(ANSWER_STATS, stored | {"_leaderboard": "_leaderboard#1"})
    assert (row["person"], row["total_answers"], row["total_points"]) == (pseudonym(own), 20, 200)
    moved = {"fingerprint_hash": own, "moved_to": newer, "version": 3, "updated_at": stamp(NOON)}
    row = published(ANSWER_STATS, moved)
    assert (row["moved_to"], row["total_answers"]) == (pseudonym(newer), None)
    assert own not in str(row)
    assert newer not in str(row)


def test_a_question_has_its_answers_once_it_is_over() -> None:
    row = published(QUESTIONS, question_item(ASKED))
    assert (row["prompt"], row["options"], row["options_count"]) == ("Où?", '["größe","b,c"]', 2)
    assert (row["status"], row["responses"], row["audience"]) == ("OPEN", None, None)
    restored = replace(ASKED, status=QuestionStatus.PARTIAL, current_responses=2)
    assert published(QUESTIONS, question_item(restored)) == row
    closed = replace(ASKED, status=QuestionStatus.CLOSED, current_responses=3, closed_at=stamp(ARRIVED))
    later = published(QUESTIONS, question_item(closed), change=event_version(ARRIVED.timestamp(), "7"))
    assert (later["responses"], later["closed_at"]) == (3, ARRIVED)
    assert later["version"] > row["version"], "the change is the newer version, also within a second"


def test_a_message_tells_the_phone_and_not_whose_it_is() -> None:
    stored = {KEY: claim_key("ann-phone", "question=q1"), "claimed_at": stamp(NOON), "outcome": "sent"}
    row = published(NOTIFICATIONS, stored | {"settled_at": stamp(NOON), "expires_at": 1}, change="7")
    assert (row["phone"], row["question_id"], row["version"]) == (pseudonym("ann-phone"), "q1", "7")
    reminder = published(NOTIFICATIONS, stored | {KEY: claim_key("p", "reminder=2026-03-01")}, change="8")
    assert (reminder["question_id"], reminder["message"]) == (None, "reminder=2026-03-01")


def is_published(mapping: str, name: str, attributes: dict[str, Any]) -> bool:
    record = {"eventName": name, "dynamodb": {"NewImage": encode_item(attributes)}}
    filters = properties(mapping)["FilterCriteria"]["Filters"]
    return any(matches(json.loads(each["Pattern"]), record) for each in filters)


CLOSED = question_item(replace(ASKED, status=QuestionStatus.CLOSED, current_responses=3))
CLAIM = {KEY: claim_key("s", "question=q1"), "claimed_at": stamp(NOON)}


@pytest.mark.parametrize(
    ("mapping", "name", "attributes", "expected"),
    [
        ("PublishQuestionsMapping", "INSERT", question_item(ASKED), True),
        ("PublishQuestionsMapping", "MODIFY", question_item(replace(ASKED, current_responses=1)), False),
        ("PublishQuestionsMapping", "MODIFY", CLOSED, True),
        ("PublishQuestionsMapping", "MODIFY", {**CLOSED, "status": "EXPIRED"}, True),
        ("PublishQuestionsMapping", "MODIFY", question_item(ASKED), True),  # asked again under the same key
        ("PublishResponsesMapping", "INSERT", to_item(answer(1)), True),
        ("PublishResponsesMapping", "MODIFY", to_item(answer(1)) | {COUNTED: "now"}, False),
        ("PublishNotificationsMapping", "INSERT", CLAIM | {"active": SENDING}, False),
        ("PublishNotificationsMapping", "MODIFY", CLAIM | {"outcome": "sent"}, True),
        ("PublishNotificationsMapping", "MODIFY", {KEY: "s", "owner": "ann", "fcm_token": "t"}, False),
    ],
)
def test_only_what_an_analyst_needs_is_handed_to_the_publisher(
    mapping: str, name: str, attributes: dict[str, Any], expected: bool
) -> None:
    assert is_published(mapping, name, attributes) is expected


def test_no_entity_of_questions_has_a_column_for_a_name() -> None:
    for name in ("questions", "responses", "answer_stats", "notifications"):
        fields = {each.name for each in ENTITIES[name].fields}
        assert not fields & {"user_id", "answer", "fingerprint_hash", "subscription_id", "owner", "fcm_token"}
