"""Turns a signed-in person's answer into an engagement event, which earns points and keeps the streak.

The event is the person's, and the answer is nobody's. So nothing in the event leads to the answer: its
idempotency key is a keyed hash, it does not name the question, and its times are whole minutes.
"""

import json
from dataclasses import dataclass

from rules.book.book import Books, Declarer, terms_of
from rules.days import Moment, date_of, stamp, unstamp
from rules.engagement.events import Event, body_hash, event_id, measures_of
from rules.questions.responses import Response

EVENT_TYPE = "QUESTION_ANSWERED"
SOURCE = "questions"


@dataclass(frozen=True, slots=True)
class Submission:
    """What a person hands in. event: the one that the answer is, if the person is signed in."""

    response: Response
    event: Event | None


def event_of_answer(
    response: Response, user_id: str, key: str, zone_stored: str | None, books: Books
) -> Event | None:
    """Return the event of a user's answer; None if the book has no such type.

    key: a keyed hash of the user and the question (rule 4): one event for both. The date is rule 1's: the
    answer's own timezone, else the zone that the user has set, else UTC.
    """
    answered = unstamp(response.created_at)
    minute = answered.replace(second=0, microsecond=0)
    moment, at = Moment(minute, None), stamp(minute)
    version = next(books.judging(EVENT_TYPE, minute, answered), None)
    if version is None:
        return None
    terms = terms_of(version, EVENT_TYPE, minute)
    day, zone = date_of(moment, response.timezone, zone_stored)
    properties = {"category": response.category}
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
        measures=measures_of(properties, terms.measured),
        timezone=response.timezone,
        properties=json.dumps(properties, separators=(",", ":")),
    )


def event_digest(event: Event) -> str:
    """Return the digest for the event's claim: three of its values stand for the body that it never had."""
    body = {"event_type": event.event_type, "occurred_at": event.occurred_at, "source": event.source}
    return body_hash(body)
