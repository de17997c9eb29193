"""The entities of questions: questions, responses, answer_stats and notifications; how items become rows, and
what of a row stays when a person is erased.

People who answer are under pseudonyms (docs/decisions/0035-what-the-lake-knows-of-who-answers.md). No row has
a user id, a key of the tables, or what a person wrote.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rules.days import stamp_of_key
from rules.lake.engagement_entities import FIRST_STORED, VERSION_BYTES, event_version
from rules.lake.pseudonyms import pseudonym
from rules.lake.residues import HOUR, TICK, ErasureNames, Residue, SeqOf, hour_of
from rules.lake.schema import INSERTS, Entity, Field, PublishedTable, Required, Row, Type
from rules.parts import Part

TEXT, INTEGER, BOOLEAN, DATE, TIMESTAMP = Type
OPEN, PARTIAL = "OPEN", "PARTIAL"
SENT_MARK = "#sent#"  # in the key of a message's claim
QUESTION_KEY = "question="
# Changes that are published, as Lambda's filter patterns.
# A question that is asked, also under the key of one that expired long since, or that has closed; not the
# answers that are counted.
ASKED_OR_CLOSED = (
    *INSERTS,
    '{"eventName": ["MODIFY"], "dynamodb": {"NewImage": {"status": {"S": ["CLOSED", "EXPIRED"]}}}}',
    '{"eventName": ["MODIFY"], "dynamodb": {"NewImage": {"current_responses": {"N": ["0"]}}}}',
)
# Of the subscriptions' table: messages whose outcome is known, what is kept of phones
# (adapters/questions/subscription_store.py), and what is removed, of which the publisher keeps phones, by
# their keys. No filter leaves out what ends by its time to live: AWS documents none for what a record lacks.
SETTLED = ('{"eventName": ["MODIFY"], "dynamodb": {"NewImage": {"outcome": {"S": [{"exists": true}]}}}}',)
CHANGED_PHONES = (
    (
        '{"eventName": ["INSERT", "MODIFY"], '
        '"dynamodb": {"NewImage": {"is_changed": {"BOOL": [{"exists": true}]}}}}'
    ),
    '{"eventName": ["REMOVE"]}',
)


def question_row(row: Row, arrived: datetime, change: str) -> Row:
    """Write options as JSON text. Leave out how many responses an open question has, for more may come.

    PARTIAL becomes OPEN for the same reason: no answer of an open question is published as its change.
    A question as it was first stored has no place of a change, so its version is the second of its arrival.
    """
    is_first = change == FIRST_STORED
    shaped = _with_times(row, "created_at", "closes_at")
    shaped["version"] = event_version(arrived.timestamp(), "0") if is_first else change
    options, responses = shaped.pop("options", None) or [], shaped.pop("current_responses", None)
    if not shaped.get("audience"):
        shaped.pop("audience", None)
    if options:
        shaped["options"] = json.dumps(options, ensure_ascii=False, separators=(",", ":"))
    shaped["options_count"] = len(options)
    is_open = shaped.get("status") in {OPEN, PARTIAL}
    return shaped | ({"status": OPEN} if is_open else {"responses": responses})


def response_row(row: Row, *_: object) -> Row:
    """Put the pseudonym in place of the person's hash, and the answer's length in place of its text."""
    shaped = {name: value for name, value in _with_times(row, "created_at").items() if name != "answer"}
    if isinstance(answer := row.get("answer"), str):
        shaped["answer_characters"] = len(answer)
    return _with_pseudonyms(shaped, "person")


def answer_stats_row(row: Row, *_: object) -> Row:
    """Put pseudonyms in place of the person, and of the person to whom the stats have moved."""
    return _with_pseudonyms({name: value for name, value in row.items() if value != ""}, "person", "moved_to")


def is_settled(attributes: Mapping[str, Any]) -> bool:
    """Whether an item of Subscriptions is a row: a message whose outcome is known."""
    return "outcome" in attributes


def notification_row(row: Row, _arrived: datetime, change: str) -> Row:
    """Split the key of a message's claim, `{subscription}#sent#{message}`."""
    shaped = {**row, "version": change}
    phone, _, message = str(shaped.pop("subscription_id", "")).partition(SENT_MARK)
    shaped |= {"phone": pseudonym(phone), "message": message}
    if message.startswith(QUESTION_KEY):
        shaped["question_id"] = message.removeprefix(QUESTION_KEY)
    return shaped


def _with_times(row: Row, *names: str) -> Row:
    """Replace sort keys by the times that they are; a value that is no text stays."""
    times = {name: stamp_of_key(row[name]) for name in names if isinstance(row.get(name), str)}
    return {**row, **times}


def _with_pseudonyms(row: Row, *names: str) -> Row:
    """Replace these names' values; a value that is no text stays, so that curation refuses it."""
    pseudonyms = {name: pseudonym(row[name]) for name in names if isinstance(row.get(name), str)}
    return row | pseudonyms


QUESTIONS = Entity(
    "questions",
    "One row per question asked, in its newest version.",
    (
        Required("question_id", TEXT, "follows from agent and idempotency key", 64),
        Required("created_at", TIMESTAMP, "when it was asked"),
        Required("agent_id", TEXT, "the agent that asked", 256),
        Required("question_type", TEXT, "text or multiple_choice", 32, attribute="type"),
        Required("category", TEXT, "the agent's category, or general", 64),
        Required("prompt", TEXT, "what was asked", 4096),
        Field("options", TEXT, "multiple_choice: the options, a JSON list"),
        Required("options_count", INTEGER, "multiple_choice: how many options there are"),
        Field("audience", TEXT, "tags of its audience, separated by commas; empty: everybody", 512),
        Required("required_responses", INTEGER, "how many answers it needs"),
        Required("closes_at", TIMESTAMP, "from when it takes no answers"),
        Required("status", TEXT, "OPEN (PARTIAL, too), CLOSED (it has all answers) or EXPIRED", 16),
        Field("closed_at", TIMESTAMP, "when the last required answer came"),
        Field("responses", INTEGER, "answers that it had when it closed or expired; empty while it is open"),
        Required("version", TEXT, "grows with each published change", VERSION_BYTES),
    ),
    key=("question_id", "created_at"),  # 90 days after it closed, an agent may ask under the same key again
    occurred="created_at",
    spread="question_id",
    left_out=frozenset({"expires_at", "body_hash", "idempotency_key"}),
    shape=question_row,
    version="version",
    part=Part.QUESTIONS,
    published=PublishedTable("Questions", "PublishQuestionsMapping", ASKED_OR_CLOSED),
)

RESPONSES = Entity(
    "responses",
    "One row per answer to a question. People are under pseudonyms, and what they wrote is not here.",
    (
        Required("question_id", TEXT, "the question", 64),
        Required(
            "person", TEXT, "who answered, under the lake's pseudonym", 64, attribute="fingerprint_hash"
        ),
        Required("created_at", TIMESTAMP, "when it was answered"),
        Required("agent_id", TEXT, "the agent that asked", 256),
        Required("question_type", TEXT, "text or multiple_choice", 32, attribute="type"),
        Required("category", TEXT, "the question's category", 64),
        Required("number", INTEGER, "its number among the question's answers, from 1"),
        Field("selected_option", INTEGER, "multiple_choice: the option's number, from 0"),
        Field("answer_characters", INTEGER, "text: the answer's length; its words are not published"),
        Field("confidence", INTEGER, "how sure the person is, 1 to 5"),
        Field("response_time_ms", INTEGER, "how long the person took, as their app says"),
        Required("points", INTEGER, "points before the daily cap"),
        Required("activity_date", DATE, "the date that it counts for (rule 1)"),
        Required("is_signed_in", BOOLEAN, "whether the person was signed in"),
        Required("day_points_max", INTEGER, "the cap of its date"),
    ),
    key=("question_id", "person"),
    occurred="created_at",
    spread="person",
    # What could name a person or tell their other hashes stays in the table.
    left_out=frozenset({"response_id", "older_hashes", "upcoming_hashes", "zone", "timezone", "counted_at"}),
    shape=response_row,
    may_age=False,
    part=Part.QUESTIONS,
    published=PublishedTable("Responses", "PublishResponsesMapping", INSERTS),
)

ANSWER_STATS = Entity(
    "answer_stats",
    "One row per version of a person's stats of answers.",
    (
        Required(
            "person",
            TEXT,
            "whose stats they are, under the lake's pseudonym",
            64,
            attribute="fingerprint_hash",
        ),
        Required("version", INTEGER, "grows with each write of these stats"),
        Required("updated_at", TIMESTAMP, "when this version was written"),
        Field(
            "moved_to",
            TEXT,
            "the same person's newer pseudonym, after a key rotation; then all below is empty",
            64,
        ),
        Field("total_answers", INTEGER, "answers"),
        Field("total_points", INTEGER, "points, each date's up to the daily cap"),
        Field("streak_days", INTEGER, "length of the run that ends on streak_last_date"),
        Field("longest_streak_days", INTEGER, "length of the longest run"),
        Field("streak_last_date", DATE, "the newest date with an answer"),
        Field("badges", TEXT, "badges earned, separated by commas", 2048),
        Field("answers_by_category", TEXT, "answers in each of the first categories, JSON text", 2048),
        Field("first_answer_at", TIMESTAMP, "when the first answer was given", attribute="created_at"),
        Field("newest_answer_at", TIMESTAMP, "when the newest answer was given", attribute="newest_at"),
    ),
    key=("person", "version"),
    occurred="updated_at",
    spread="person",
    left_out=frozenset(
        {"_leaderboard", "older_hashes", "zone", "days", "settled", "badge_days", "category_days"}
    ),
    shape=answer_stats_row,
    version="version",
    part=Part.QUESTIONS,
    published=PublishedTable("UserStats", "PublishStatsMapping"),
)

NOTIFICATIONS = Entity(
    "notifications",
    "One row per message to a phone whose outcome is known.",
    (
        Required("phone", TEXT, "a pseudonym of the subscription: one person on one phone", 64),
        Required("message", TEXT, "what it was about: question=ID, or reminder=DATE", 256),
        Required("claimed_at", TIMESTAMP, "just before it was sent"),
        Field("question_id", TEXT, "the question announced; empty for a reminder", 64),
        Required("outcome", TEXT, "sent, dead (the phone is gone) or unconfirmed", 16),
        Field("settled_at", TIMESTAMP, "when the outcome was known"),
        Required("version", TEXT, "grows with each change of the outcome", VERSION_BYTES),
    ),
    key=("phone", "message"),
    occurred="claimed_at",
    spread="phone",
    left_out=frozenset({"active", "last_notified_at", "expires_at"}),
    shape=notification_row,
    version="version",
    part=Part.QUESTIONS,
    published=PublishedTable("Subscriptions", "PublishNotificationsMapping", (*SETTLED, *CHANGED_PHONES)),
    has_row=is_settled,
)


def _end_of_hour(row: Mapping[str, Any], _names: ErasureNames, _seq_of: SeqOf) -> datetime:
    """Return the last instant of an answer's hour, so that the answer stays after its question."""
    return hour_of(row["created_at"]) + HOUR - TICK


RESIDUES: Mapping[str, Residue] = {
    "responses": Residue(
        person="person",
        unchanged=(
            *("question_id", "agent_id", "question_type", "category", "number", "selected_option"),
            *("confidence", "points", "activity_date", "is_signed_in", "day_points_max"),
        ),
        computed={"created_at": _end_of_hour},
    ),
    "answer_stats": Residue(
        person="person",
        unchanged=(
            *("version", "total_answers", "total_points", "streak_days", "longest_streak_days"),
            *("streak_last_date", "badges", "answers_by_category"),
        ),
        instants=("updated_at", "first_answer_at", "newest_answer_at"),
        computed={
            "moved_to": lambda row, names, _: names.name_of(row["moved_to"]) if row["moved_to"] else None
        },
    ),
    "notifications": Residue(
        person="phone",
        unchanged=("message", "question_id", "outcome", "version"),
        instants=("claimed_at", "settled_at"),
    ),
}
ENTITIES = (QUESTIONS, RESPONSES, ANSWER_STATS, NOTIFICATIONS)
