"""A response as it is made and stored, the shard and the alias of its user, and the event that it leads to."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.platform.items import decode_item, encode_item
from adapters.questions.user_stats_store import leaderboard_partition
from rules.days import AT_MIDNIGHT, EPOCH, Moment, date_of, stamp
from rules.engagement.events import InputRefused, MalformedItem
from rules.engagement.events import from_item as event_from
from rules.engagement.events import to_item as event_item
from rules.key_ring import PersonHashes
from rules.questions.answer_stats import person_alias
from rules.questions.questions import QuestionType
from rules.questions.responses import (
    event_digest,
    event_of_answer,
    from_item,
    new_response,
    points_for,
    public_id,
    to_item,
)
from tests.support.books import KnownBooks
from tests.support.engagement_strategies import instants, zones
from tests.support.examples import examples
from tests.support.questions.answers import answer
from tests.support.questions.asking import asked

BOOKS = KnownBooks().books()

bodies = st.fixed_dictionaries(
    {},
    optional={
        "answer": st.text(max_size=5),
        "selected_option": st.integers(0, 3),
        "confidence": st.integers(1, 5),
        "response_time_ms": st.integers(0, 700_000),
        "timezone": zones,
    },
)


@settings(max_examples=examples(60))
@given(bodies, instants, st.booleans(), st.sampled_from(QuestionType))
def test_a_response_says_what_was_answered_by_whom_and_on_which_date(
    body: dict[str, Any], now: Any, is_signed_in: bool, kind: QuestionType
) -> None:
    question = replace(asked(), type=kind)
    made = new_response(question, body, PersonHashes("hash", is_signed_in=is_signed_in), BOOKS, now)
    for name in ("answer", "selected_option", "confidence", "response_time_ms", "timezone"):
        assert getattr(made, name) == body.get(name)
    assert (made.key, made.is_signed_in, made.type) == ((question.question_id, "hash"), is_signed_in, kind)
    assert (made.agent_id, made.category) == (question.agent_id, question.category)
    assert (made.activity_date, made.zone) == date_of(
        Moment(now, None), body.get("timezone"), None, AT_MIDNIGHT
    )
    earned = points_for(BOOKS.at(now).book.answers, body.get("confidence"), body.get("response_time_ms"))
    assert (made.points, made.day_points_max) == (sum(earned.values()), 150)
    assert (made.created_at, made.number) == (stamp(now), 0)


def test_an_answer_in_no_zone_is_refused() -> None:
    with pytest.raises(InputRefused, match="timezone") as refused:
        new_response(asked(), {"answer": "a", "timezone": "Mars/Base"}, PersonHashes("hash"), BOOKS, EPOCH)
    assert refused.value.field == "timezone"


def test_a_shard_is_the_same_in_every_process_and_all_are_used() -> None:
    people = [f"{number:032x}" for number in range(200)]
    assert leaderboard_partition(people[0], 8) == leaderboard_partition(people[0], 8) == "_leaderboard"
    assert {leaderboard_partition(each, 8) for each in people} == {
        "_leaderboard",
        *(f"_leaderboard#{shard}" for shard in range(1, 8)),
    }
    assert {leaderboard_partition(each, 1) for each in people} == {"_leaderboard"}


def test_an_alias_and_a_public_id_lead_back_to_nobody() -> None:
    person = "0123456789abcdef0123456789abcdef"
    for name in (person_alias(person), public_id("q", person)):
        assert not any(name[at : at + 6] in person for at in range(len(name) - 5))
    assert public_id("q", person) != public_id("r", person)


def test_a_response_is_read_as_it_was_stored() -> None:
    for response in (
        answer(1),
        replace(
            answer(2), is_signed_in=False, confidence=3, timezone="Asia/Tokyo", answer="t", day_points_max=40
        ),
    ):
        assert from_item(decode_item(encode_item(to_item(response)))) == response


@pytest.mark.parametrize(
    "change",
    [
        {"fingerprint_hash": None},
        {"response_id": "other"},
        {"points": -1},
        {"points": "5"},
        {"day_points_max": "5"},
        {"type": "poll"},
        {"activity_date": "2026-02-30"},
        {"created_at": "yesterday"},
        {"zone": "Nowhere/At-all"},
        {"category": ""},
        {"is_signed_in": None},
        {"is_signed_in": "true"},
    ],
)
def test_a_malformed_response_is_named(change: dict[str, Any]) -> None:
    with pytest.raises(MalformedItem, match=r"(is|is not) |malformed"):
        from_item(to_item(answer(1)) | change)


@pytest.mark.parametrize(
    ("own", "stored", "day", "zone"),
    [
        (None, None, "2026-03-01", "UTC"),
        (None, "Asia/Tokyo", "2026-03-02", "Asia/Tokyo"),
        ("America/Lima", "Asia/Tokyo", "2026-03-01", "America/Lima"),
    ],
)
def test_an_answer_s_event_is_dated_by_rule_1(
    own: str | None, stored: str | None, day: str, zone: str
) -> None:
    response = replace(answer(1), created_at="2026-03-01T20:00:59.123456Z", timezone=own)
    event = event_of_answer(response, "ann", "key", stored, BOOKS)
    assert event is not None
    assert (event.activity_date.isoformat(), event.zone, event.points_awarded) == (day, zone, 10)
    assert (event.user_id, event.idempotency_key) == ("ann", "key")
    assert event_from(event_item(event)) == event
    assert event_digest(event)


@pytest.mark.parametrize("zone", [None, "Asia/Kathmandu", "-03:30"])
def test_nothing_in_an_answer_s_event_leads_to_the_answer(zone: str | None) -> None:
    """But that it was given in this minute, to a question of this category."""
    response = replace(answer(1), created_at="2026-03-01T20:00:59.123456Z", timezone=zone)
    event = event_of_answer(response, "ann", "k" * 32, None, BOOKS)
    assert event is not None
    written = str(event_item(event))
    for each in (response.question_id, response.fingerprint_hash, response.agent_id, ":00:59", "123456"):
        assert each not in written
    assert event.occurred_at == event.created_at == "2026-03-01T20:00:00.000000Z"
    assert "user_id" not in to_item(response)
