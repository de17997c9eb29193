"""The bodies of events, as JSON Schema: the doors validate with them, and the OpenAPI document shows them."""

from ingest.web.json_schema import KEY, SHORT, USER_ID, closed_object
from rules.book.book import TYPE_NAME

EVENTS_MAX = 100
EVENT = closed_object(
    {
        "idempotency_key": KEY,
        "event_type": {
            "type": "string",
            "pattern": TYPE_NAME,
            "description": "a type of the book of rules (GET /v1/rules); some only servers may declare:"
            " streakline/producers or streakline/admin",
        },
        "occurred_at": {
            "type": "string",
            "maxLength": 40,
            "description": "RFC 3339 with Z or an offset; at most 72 hours ago (with a receipt more;"
            " admins, producers: any time from 1970 on), at most 5 minutes ahead",
        },
        "timezone?": {
            "type": ["string", "null"],
            "maxLength": 256,
            "description": "IANA name or offset (-07:00), also as devices spell them (GMT+03:00,"
            " posix/Europe/Berlin); decides the activity date. In place of one that is unknown, the offset"
            " of occurred_at does; without that the event is refused",
        },
        "source?": {"type": "string", "pattern": SHORT},
        "user_id?": {
            "type": "string",
            "pattern": USER_ID,
            "description": "admins and producers; else the caller's own",
        },
        "properties?": {"type": "object", "description": "anything, up to 64 KB as JSON"},
    },
    example={
        "idempotency_key": "3f1c",
        "event_type": "LESSON_COMPLETED",
        "occurred_at": "2026-11-20T23:30:00-05:00",
        "timezone": "America/New_York",
    },
)
EVENTS = closed_object(
    {
        "events": {
            "type": "array",
            "minItems": 1,
            "maxItems": EVENTS_MAX,
            "items": {"type": "object"},
            "description": "each is checked by itself: a bad one never spoils its neighbours",
        },
        "sent_at?": {
            "type": "string",
            "maxLength": 40,
            "description": "when the batch is sent, by the clock that `occurred_at` is read from (RFC 3339)."
            " Where that clock is more than two minutes wrong, the times of the events are corrected",
        },
        "receipt?": {
            "type": "string",
            "maxLength": 128,
            "description": "the time receipt (Streakline-Time-Receipt of an earlier answer) that the device"
            " had when the oldest of these events happened. With it events of more than 72 hours ago count"
            " that waited in a device without a network. The request names the device, as the one that was"
            " answered did (Streakline-Device)",
        },
    }
)
