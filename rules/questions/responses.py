"""Responses: a person's answer to a question as it is stored, what it earns (rule 5), and the event of it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from rules.book.book import AnswerRules, Books, Declarer, terms_of
from rules.days import (
    GREATEST_OFFSET,
    Moment,
    UnknownZone,
    date_of,
    key_of_stamp,
    stamp,
    stamp_of_key,
    unstamp,
    zone,
)
from rules.engagement.events import (
    Event,
    InputRefused,
    MalformedItem,
    body_hash,
    count_of,
    event_id,
    text_of,
)
from rules.key_ring import PersonHashes
from rules.questions.questions import Question, QuestionType
from rules.zone_names import find_zone

# Every process knows a version at latest this long after its publication. It looks twice a minute
# (adapters/book_store.py).
KNOWN_AFTER = timedelta(minutes=1)


def points_for(rules: AnswerRules, confidence: int | None, response_time_ms: int | None) -> dict[str, int]:
    """Return what an answer earns before the daily cap, by reason. Example: {"answer": 10, "timing": 2}."""
    earned = {"answer": rules.points}
    if rules.confidence_points and confidence is not None:
        earned["confidence"] = rules.confidence_points
    timing = rules.timing
    if timing and response_time_ms is not None and timing.from_ms <= response_time_ms <= timing.to_ms:
        earned["timing"] = timing.points
    return earned


def day_points_max(books: Books, day: date) -> int:
    """Return the most points that a person's answers of a date earn.

    It is the cap of the version that was in force when the date began anywhere (10:00 UTC of the date
    before), and that was published at least a minute before. A version that is published later does not
    change it, even if it takes effect in the past. So once the date has begun, every process returns the
    same.
    """
    begin = datetime.combine(day, time(), UTC) - GREATEST_OFFSET
    return books.at_as_known(begin, begin - KNOWN_AFTER).book.answers.day_points_max


# The attributes that a stored response may lack.
OPTIONAL = ("selected_option", "answer", "answer_characters", "confidence", "response_time_ms", "timezone")


@dataclass(frozen=True, slots=True)
class Response:
    """One person's answer to one question."""

    question_id: str
    fingerprint_hash: str
    agent_id: str
    type: QuestionType
    category: str
    number: int  # 1 for the question's first answer, in the order of their commits
    points: int  # before the daily cap
    day_points_max: int  # the most that the person's answers of its date earn
    created_at: str
    activity_date: date  # by rule 1, in `zone`
    zone: str
    # Whether the person answered for themselves. No response says whose account that is.
    is_signed_in: bool = False
    selected_option: int | None = None
    answer: str | None = None
    confidence: int | None = None
    response_time_ms: int | None = None
    timezone: str | None = None  # what the answer itself named, if anything
    # The person's hashes by the retired keys that there were when the answer was stored (rules/key_ring.py).
    older_hashes: tuple[str, ...] = ()
    upcoming_hashes: tuple[str, ...] = ()  # likewise, by the keys that were not in use yet
    answer_characters: int | None = None  # the length of a text that was deleted (rule 22)

    @property
    def length(self) -> int | None:
        """How many characters a text answer has, or had; None for one of multiple choice."""
        return self.answer_characters if self.answer is None else len(self.answer)

    @property
    def other_hashes(self) -> tuple[str, ...]:
        """The other hashes under which the same person may have answered."""
        return *self.older_hashes, *self.upcoming_hashes

    @property
    def key(self) -> tuple[str, str]:
        """(question_id, response_id). The response_id is the fingerprint_hash."""
        return self.question_id, self.fingerprint_hash


def public_id(question_id: str, fingerprint_hash: str) -> str:
    """Return the id of a response that its agent sees. It differs between the questions of one person."""
    return hashlib.sha256(f"{question_id}\x00{fingerprint_hash}".encode()).hexdigest()[:16]


def new_response(
    question: Question, body: Mapping[str, Any], person: PersonHashes, books: Books, now: datetime
) -> Response:
    """Return an answer as a response with the number 0; it gets its number when it is stored.

    body: the answer, which ingest's schema and check_answer() have let in. books: those that the process
    knows. Raises InputRefused (invalid_field: timezone).
    """
    try:
        own_zone = find_zone(body["timezone"]) if "timezone" in body else None
        day, zone_name = date_of(Moment(now, None), own_zone, None, books.day_starts)
    except UnknownZone as error:
        raise InputRefused("invalid_field", "timezone", str(error)) from None
    earned = points_for(books.at(now).book.answers, body.get("confidence"), body.get("response_time_ms"))
    return Response(
        question_id=question.question_id,
        fingerprint_hash=person.own,
        agent_id=question.agent_id,
        type=question.type,
        category=question.category,
        number=0,
        points=sum(earned.values()),
        day_points_max=day_points_max(books, day),
        created_at=stamp(now),
        activity_date=day,
        zone=zone_name,
        is_signed_in=person.is_signed_in,
        timezone=own_zone,
        older_hashes=person.older,
        upcoming_hashes=person.upcoming,
        **{name: body.get(name) for name in ("selected_option", "answer", "confidence", "response_time_ms")},
    )


def to_item(response: Response) -> dict[str, Any]:
    """Return the response as table attributes."""
    return asdict(response) | {
        "response_id": response.fingerprint_hash,
        "created_at": key_of_stamp(response.created_at),
        "type": response.type.value,
        "activity_date": response.activity_date.isoformat(),
        "older_hashes": response.older_hashes or None,
        "upcoming_hashes": response.upcoming_hashes or None,
    }


def from_item(item: Mapping[str, Any]) -> Response:
    """Read a stored response; raises MalformedItem, with the attribute and the reason."""
    try:
        response = Response(
            question_id=text_of(item, "question_id"),
            fingerprint_hash=text_of(item, "fingerprint_hash"),
            agent_id=text_of(item, "agent_id"),
            type=QuestionType(text_of(item, "type")),
            category=text_of(item, "category"),
            number=count_of(item, "number"),
            points=count_of(item, "points"),
            day_points_max=count_of(item, "day_points_max"),
            created_at=stamp_of_key(text_of(item, "created_at")),
            activity_date=date.fromisoformat(text_of(item, "activity_date")),
            zone=text_of(item, "zone"),
            is_signed_in=_flag(item, "is_signed_in"),
            older_hashes=_hashes(item, "older_hashes"),
            upcoming_hashes=_hashes(item, "upcoming_hashes"),
            **{name: item.get(name) for name in OPTIONAL},
        )
        unstamp(response.created_at)
        zone(response.zone)
    except (MalformedItem, InputRefused):
        raise
    except ValueError as error:
        raise MalformedItem(f"the stored response is malformed: {error}") from None
    if item.get("response_id") != response.fingerprint_hash:
        raise MalformedItem("response_id is not the fingerprint_hash")
    return response


def _flag(item: Mapping[str, Any], name: str) -> bool:
    if not isinstance(value := item.get(name), bool):
        raise MalformedItem(f"{name} is {'missing' if value is None else 'neither true nor false'}")
    return value


def _hashes(item: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Read hashes. An item lacks the attribute if there was only one key when it was stored."""
    hashes = item.get(name, [])
    if not isinstance(hashes, (list, tuple)) or not all(isinstance(text, str) and text for text in hashes):
        raise MalformedItem(f"{name} is no list of hashes")
    return tuple(hashes)


EVENT_TYPE = "QUESTION_ANSWERED"
SOURCE = "questions"


def event_of_answer(
    response: Response, user_id: str, key: str, stored_zone: str | None, books: Books
) -> Event | None:
    """Return the event of a user's answer; None if the book has no such type.

    The event names the user, and the response does not. So nothing in the event leads to the response: the
    idempotency key is a keyed hash, the question is not named, and times are whole minutes.

    key: a keyed hash of the user and the question (rule 4), so that both have one event. stored_zone: the
    zone that the user has set. The date follows from rule 1: by the answer's own timezone, else by
    stored_zone, else by UTC.
    """
    answered = unstamp(response.created_at)
    minute = answered.replace(second=0, microsecond=0)
    moment, at = Moment(minute, None), stamp(minute)
    version = next(books.judging(EVENT_TYPE, minute, answered), None)
    if version is None:
        return None
    properties = {"category": response.category}
    terms = terms_of(version, EVENT_TYPE, minute, properties)
    day, zone = date_of(moment, response.timezone, stored_zone, books.day_starts)
    return Event(
        user_id=user_id,
        event_id=event_id(user_id, key, moment),
        idempotency_key=key,
        event_type=EVENT_TYPE,
        occurred_at=at,
        activity_date=day,
        zone=zone,
        points_awarded=terms.points,
        source=SOURCE,
        created_at=at,
        rules_version=terms.version,
        cap=terms.cap,
        is_passive=not terms.keeps_streak,
        expiry=terms.expiry,
        by_server=terms.declared_by is Declarer.SERVER,
        measures=terms.measures,
        timezone=response.timezone,
        properties=json.dumps(properties, separators=(",", ":")),
    )


def event_digest(event: Event) -> str:
    """Return the digest of a body, for the claim of the event's idempotency key."""
    # No client has sent this event, so it has no body. Three of its values stand for one.
    body = {"event_type": event.event_type, "occurred_at": event.occurred_at, "source": event.source}
    return body_hash(body)
