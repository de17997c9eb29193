"""The engagement event of an answer. A person who is signed in earns by it like by any other event."""

import json
from dataclasses import dataclass

from rules.book.book import Books, Declarer, terms_of
from rules.days import Moment, date_of, stamp, unstamp
from rules.engagement.events import (
    Event,
    body_hash,
    event_id,
    measures_of,
)
from rules.questions.responses import Response

EVENT_TYPE = "QUESTION_ANSWERED"
SOURCE = "questions"


@dataclass(frozen=True, slots=True)
class Submission:
    """What is stored of an answer."""

    response: Response
    event: Event | None  # None: the person is not signed in, or the book has no such type


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
    terms = terms_of(version, EVENT_TYPE, minute)
    day, zone = date_of(moment, response.timezone, stored_zone)
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
    """Return the digest of a body, for the claim of the event's idempotency key."""
    # No client has sent this event, so it has no body. Three of its values stand for one.
    body = {"event_type": event.event_type, "occurred_at": event.occurred_at, "source": event.source}
    return body_hash(body)
