"""The marts of questions say what a plain loop over the lake's rows says."""

from collections import Counter
from datetime import datetime
from itertools import combinations
from typing import Any

from tests.sql.conftest import Lake
from tests.sql.questions.test_answer_points_twin import points_of
from tests.support.questions.answer_story import MOVED, PEOPLE

Rows = list[dict[str, Any]]


def seconds(since: datetime, until: datetime) -> int:
    return int((until.replace(microsecond=0) - since.replace(microsecond=0)).total_seconds())


def answers_of(question: dict[str, Any], questions: Rows, responses: Rows) -> Rows:
    """Answers to one asking: those after it, and before the same question was asked again."""
    same = [each["created_at"] for each in questions if each["question_id"] == question["question_id"]]
    return [
        each
        for each in responses
        if each["question_id"] == question["question_id"]
        and max((at for at in same if at <= each["created_at"]), default=None) == question["created_at"]
    ]


def test_time_to_answer_and_agreement(told: Lake) -> None:
    questions, responses = (
        told.duck.rows(f"SELECT * FROM lake.{each}") for each in ("questions", "responses")
    )
    times = {
        (r["question_id"], r["asked_at"]): r for r in told.duck.rows("SELECT * FROM marts.time_to_answer")
    }
    agreed = {
        (r["question_id"], r["asked_at"]): r for r in told.duck.rows("SELECT * FROM marts.question_agreement")
    }
    assert len(times) == len(questions)
    assert any(row["seconds_to_all"] for row in times.values())
    assert any(row["status"] == "EXPIRED" and row["answers"] for row in times.values())
    for question in questions:
        key, required = (question["question_id"], question["created_at"]), question["required_responses"]
        came = sorted(answers_of(question, questions, responses), key=lambda each: int(each["number"]))
        passed = [seconds(question["created_at"], each["created_at"]) for each in came]
        half = (required + 1) // 2
        expected = (
            *(len(came), passed[0] if passed else None),
            *(passed[at - 1] if len(passed) >= at else None for at in (half, required)),
        )
        row = times[key]
        assert (
            tuple(row[each] for each in ("answers", "seconds_to_first", "seconds_to_half", "seconds_to_all"))
            == expected
        )
        chosen = [each["selected_option"] for each in came if each["selected_option"] is not None]
        assert (key in agreed) == bool(chosen)
        if chosen:
            pairs = list(combinations(chosen, 2))
            alike = sum(one == other for one, other in pairs)
            row = agreed[key]
            assert row["agreement"] == max(Counter(chosen).values()) / len(chosen)
            assert row["pair_agreement"] == (alike / len(pairs) if pairs else None)


def test_people_are_counted_once_however_often_their_keys_were_rotated(told: Lake) -> None:
    rows = {row["person"]: row for row in told.duck.rows("SELECT * FROM marts.answers_per_person")}
    responses = told.duck.rows("SELECT * FROM lake.responses")
    newest = {person: PEOPLE[2] if person in MOVED else person for person in PEOPLE}
    counted = Counter(newest[each["person"]] for each in responses)
    assert {person: row["answers"] for person, row in rows.items()} == counted
    assert {row["answers"] - row["shown_answers"] for row in rows.values()} == {0}
    assert {person: row["points"] for person, row in rows.items()} == points_of(responses, newest)


def test_reminders_that_arrived(told: Lake) -> None:
    rows = told.duck.rows("SELECT * FROM marts.reminder_reach ORDER BY activity_date")
    messages = told.duck.rows("SELECT * FROM lake.notifications WHERE question_id IS NULL")
    days = Counter(each["message"].removeprefix("reminder=") for each in messages)
    assert {str(row["activity_date"]): row["phones"] for row in rows} == days
    assert days
    assert sum(row["phones_reached"] for row in rows) == sum(each["outcome"] == "sent" for each in messages)


def test_reach_and_reaction(told: Lake) -> None:
    rows = told.duck.rows("SELECT * FROM marts.notification_reach")
    messages, responses, questions = (
        told.duck.rows(f"SELECT * FROM lake.{each}") for each in ("notifications", "responses", "questions")
    )
    assert len(rows) == 7, "q0 was told to nobody"
    for row in rows:
        mine = [each for each in messages if each["question_id"] == row["question_id"]]
        sent = [each["claimed_at"] for each in mine if each["outcome"] == "sent"]
        assert (row["phones"], row["phones_reached"]) == (len(mine), len(sent))
        assert row["reach"] == len(sent) / len(mine)
        (asked,) = [each for each in questions if each["question_id"] == row["question_id"]]
        after = [
            each["created_at"]
            for each in answers_of(asked, questions, responses)
            if each["is_signed_in"] and sent and each["created_at"] >= min(sent)
        ]
        assert row["reactions"] == len(after)
        assert row["reactions_in_an_hour"] == sum(seconds(min(sent), each) < 3600 for each in after)
    assert any(row["reactions"] for row in rows)
