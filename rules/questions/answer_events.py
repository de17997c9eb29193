"""Turns a signed-in person's answer into an engagement event, which earns points and keeps the streak."""

import json
from datetime import datetime

from rules.book.book import Declarer
from rules.book.versions import Books, terms_of
from rules.days import date_of, parse_moment, stamp
from rules.engagement.events import Event, body_hash, event_id
from rules.engagement.goals.measures import measures_of
from rules.questions.responses import Response

EVENT_TYPE = "QUESTION_ANSWERED"
SOURCE = "questions"


def idempotency_key(question_id: str) -> str:
    """Return the idempotency key of an answer's event: one event for a person and a question (rule 4)."""
    return f"answer:{question_id}"


def event_of_answer(response: Response, zone_stored: str | None, now: datetime, books: Books) -> Event | None:
    """Return the event of an answer; None if the person is not signed in, or the book has no such type.

    The date is rule 1's: the answer's own timezone, else the zone that the user has set, else UTC.
    """
    moment, key = parse_moment(response.created_at), idempotency_key(response.question_id)
    version = next(books.judging(EVENT_TYPE, moment.utc, now), None)
    if response.user_id is None or version is None:
        return None
    terms = terms_of(version, EVENT_TYPE, moment.utc)
    day, zone = date_of(moment, response.timezone, zone_stored)
    properties = {"category": response.category, "question_id": response.question_id}
    return Event(
        user_id=response.user_id,
        event_id=event_id(response.user_id, key, moment),
        idempotency_key=key,
        event_type=EVENT_TYPE,
        occurred_at=response.created_at,
        activity_date=day,
        zone=zone,
        points_awarded=terms.points,
        source=SOURCE,
        created_at=stamp(now),
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
