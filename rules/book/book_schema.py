"""The JSON Schema of a book of rules, as it is published. document.py looks for all other faults."""

from typing import Any

from rules.book.answer_rules import ANSWERS
from rules.book.book import TYPE_NAME
from rules.book.goal_sections import ACHIEVEMENTS, STREAKS
from rules.book.point_rules import PERIODS
from rules.book.rewards import DESCRIPTION_MAX, REWARD_NAME, TITLE_MAX, URL_MAX

Schema = dict[str, Any]

FORMAT = 1
TYPES_MAX = 500
BOOSTS_MAX = 100
POINTS_MAX = 1_000_000
DAYS_MAX = 3650
OFFLINE_DAYS_MAX = 30
REWARDS_MAX = 500
STOCK_MAX = 1_000_000_000
_INSTANT: Schema = {
    "type": "string",
    "maxLength": 40,
    "description": "an instant with its zone (RFC 3339), such as 2027-01-01T00:00:00Z",
}


def _whole(least: int, most: int, description: str) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most, "description": description}


def _text(most: int, description: str) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": most, "description": description}


def _object_schema(required: list[str], properties: dict[str, Schema], description: str) -> Schema:
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": False,
        "description": description,
    }


_CAP = _object_schema(
    ["per"],
    {
        "points": _whole(0, POINTS_MAX, "the most points"),
        "events": _whole(1, POINTS_MAX, "or the most events that earn; a boost lifts what they earn"),
        "per": {"enum": ["day", "week"], "description": "an activity date, or a week from Monday"},
    },
    "the most that one user earns with this type; exactly one of points and events",
)
_EVENT_TYPE = _object_schema(
    ["points"],
    {
        "points": _whole(0, POINTS_MAX, "points of one event, before the cap"),
        "cap": _CAP,
        "declared_by": {
            "enum": ["anybody", "server"],
            "description": "server: only admins, producers and the Kinesis stream may send it",
        },
        "keeps_streak": {
            "type": "boolean",
            "description": "whether an event makes its date active; default: true",
        },
        "properties": {
            "type": "object",
            "description": "the data contract: a JSON Schema that an event's properties must satisfy",
        },
        "description": {"type": "string", "maxLength": 500},
    },
    "one type of event",
)
_BOOST = _object_schema(
    ["since", "until", "factor"],
    {
        "since": _INSTANT,
        "until": _INSTANT | {"description": "the first instant at which it no longer applies"},
        "factor": _whole(2, 100, "what points are multiplied by"),
        "event_types": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "maxItems": TYPES_MAX,
            "description": "the types whose points are multiplied; left out: all",
        },
    },
    "multiplies the points of events that occurred between two instants",
)
_REWARD = _object_schema(
    ["price_points", "brand"],
    {
        "price_points": _whole(1, 1_000_000_000, "the price of one; users never name it"),
        "brand": {
            "type": "string",
            "pattern": REWARD_NAME,
            "description": "whom the invoices name; each ledger entry has it",
        },
        "stock": _whole(0, STOCK_MAX, "how many there are in all; may only be raised. Left out: no limit"),
        "limit_per_user": _whole(1, 1_000_000, "how many one user may get; left out: any number"),
        "valid_from": _INSTANT,
        "valid_until": _INSTANT | {"description": "the first instant at which it is no longer offered"},
        "title": _text(TITLE_MAX, "what people see in place of the id; plain text"),
        "description": _text(DESCRIPTION_MAX, "what it is; plain text, may have several lines"),
        "image_url": _text(URL_MAX, "a picture: https://, or data:image/ for a small one"),
    },
    "one reward",
)
BOOK: Schema = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "A book of rules",
    **_object_schema(
        ["event_types"],
        {
            "format": {"const": FORMAT, "description": "of this document"},
            "event_types": {
                "type": "object",
                "minProperties": 1,
                "maxProperties": TYPES_MAX,
                "propertyNames": {"pattern": TYPE_NAME},
                "additionalProperties": _EVENT_TYPE,
                "description": "by name",
            },
            "boosts": {"type": "array", "items": _BOOST, "maxItems": BOOSTS_MAX},
            "freezes": _object_schema(
                ["held_max", "free_a_month", "price_points"],
                {
                    "held_max": _whole(1, 100, "how many unused ones a user may have"),
                    "free_a_month": _whole(0, 50, "how many are free in a month (UTC)"),
                    "price_points": _whole(1, POINTS_MAX, "the price of each further one"),
                },
                "streak freezes; left out: users can have none",
            ),
            "pauses": _object_schema(
                ["dates_max", "dates_a_year"],
                {
                    "dates_max": _whole(1, 365, "the most dates of one pause"),
                    "dates_a_year": _whole(1, 365, "the most paused dates of any 365 in a row"),
                },
                "pauses of a streak; left out: users can have none",
            ),
            "offline": _object_schema(
                ["days_max", "days_a_year"],
                {
                    "days_max": _whole(
                        0,
                        OFFLINE_DAYS_MAX,
                        "how old an event may be; 0 to 3: no older than without a receipt",
                    ),
                    "days_a_year": _whole(0, 365, "on how many days of a year a user may be offline"),
                },
                "events that waited in a device, as a time receipt proves; left out: 14 and 60",
            ),
            "expiry": _object_schema(
                [],
                {
                    "after_days": _whole(1, DAYS_MAX, "so many days after the event's date"),
                    "end_of": {
                        "enum": list(PERIODS),
                        "description": "or at the end of this period, counted from that date",
                    },
                },
                "when points expire; exactly one of after_days and end_of. Left out: never",
            ),
            "rewards": {
                "type": "object",
                "maxProperties": REWARDS_MAX,
                "propertyNames": {"pattern": REWARD_NAME},
                "additionalProperties": _REWARD,
                "description": "the catalogue, by id",
            },
            "answers": ANSWERS,
            "streaks": STREAKS,
            "achievements": ACHIEVEMENTS,
        },
        "what earns what",
    ),
}
