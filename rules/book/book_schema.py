"""The JSON Schema of a book of rules, as it is published. document.py looks for all other faults."""

from typing import Any

from rules.book.board_rules import BOARDS_MAX, BoardPeriod
from rules.book.book import DAY_POINTS_LIMIT, TYPE_NAME
from rules.book.daily import DAY_START, REPAIRED_MAX, REST_DAYS_MAX, WEEKDAYS
from rules.book.goal_rules import GOAL_NAME, ConditionKind, NeedKind, StreakPeriod
from rules.book.league_rules import DIVISIONS_MAX, SIZE_MAX, SIZE_MIN
from rules.book.point_rules import PERIODS, POINTS_MAX
from rules.book.reminders import CLOCK, CLOCK_WORDS, LANGUAGE, LANGUAGE_LENGTH_MAX
from rules.book.rewards import REWARD_NAME
from rules.parts import OF_PART

Schema = dict[str, Any]

DAYS_MAX = 3650  # until points expire
TYPES_MAX = 500
AMOUNT_MAX = 1_000_000_000
FRIENDS_MAX = 50  # each of them is read when a user looks at the list
TOOK_MS_MAX = 86_400_000  # the longest response_time_ms that the API takes


def _whole(least: int, most: int, description: str = "") -> Schema:
    schema: Schema = {"type": "integer", "minimum": least, "maximum": most}
    return schema | {"description": description} if description else schema


def _text(most: int, description: str) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": most, "description": description}


def _note(most: int) -> Schema:
    return {"type": "string", "maxLength": most}


def _flag(description: str) -> Schema:
    return {"type": "boolean", "description": description}


def _object(required: list[str] | None, properties: dict[str, Schema], description: str) -> Schema:
    return {
        "type": "object",
        **({} if required is None else {"required": required}),
        "properties": properties,
        "additionalProperties": False,
        "description": description,
    }


def _by_name(most: int, pattern: str, each: Schema, description: str) -> Schema:
    return {
        "type": "object",
        "maxProperties": most,
        "propertyNames": {"pattern": pattern},
        "additionalProperties": each,
        "description": description,
    }


_INSTANT: Schema = {
    "type": "string",
    "maxLength": 40,
    "description": "an instant with its zone (RFC 3339), such as 2027-01-01T00:00:00Z",
}
_CAP = _object(
    ["per"],
    {
        "points": _whole(0, POINTS_MAX, "the most points"),
        "events": _whole(1, POINTS_MAX, "or the most events that earn; a boost lifts what they earn"),
        "per": {"enum": ["day", "week"], "description": "an activity date, or a week from Monday"},
    },
    "the most that one user earns with this type; exactly one of points and events",
)
_PROPERTY: Schema = {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_]{0,31}$"}
_POINTS: Schema = {
    **_whole(0, POINTS_MAX),
    **_object(
        ["of", "each", "earns"],
        {
            "base": _whole(0, POINTS_MAX, "points of each event, whatever its amount; left out: 0"),
            "of": _PROPERTY | {"description": "a number that the data contract bounds"},
            "each": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": AMOUNT_MAX,
                "description": "so much of it earns; has up to three decimals",
            },
            "earns": _whole(1, POINTS_MAX, "points of each whole `each`"),
        },
        "points of one event, before the cap: a number, or an object with base, of, each and earns",
    ),
    "type": ["integer", "object"],
}
_EVENT_TYPE = _object(
    ["points"],
    {
        "points": _POINTS,
        "cap": _CAP,
        "declared_by": {
            "enum": ["anybody", "server"],
            "description": "server: only admins, producers and the Kinesis stream may send it",
        },
        "keeps_streak": _flag("whether an event makes its date active; default: true"),
        "properties": {
            "type": "object",
            "description": "the data contract: a JSON Schema that an event's properties must satisfy",
        },
        "description": _note(500),
    },
    "one type of event",
)
_BOOST = _object(
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
_FREEZES = _object(
    ["held_max", "free_a_month", "price_points"],
    {
        "held_max": _whole(1, 100, "how many unused ones a user may have"),
        "free_a_month": _whole(0, 50, "how many are free in a month (UTC)"),
        "price_points": _whole(1, POINTS_MAX, "the price of each further one"),
    },
    "streak freezes; left out: users can have none",
)
_REPAIRS = _object(
    ["price_points", "within_days", "dates_max", "a_year"],
    {
        "price_points": _whole(1, POINTS_MAX, "the price of each repaired date"),
        "within_days": _whole(1, REPAIRED_MAX, "until so many dates after the first missed one"),
        "dates_max": _whole(1, REPAIRED_MAX, "the most missed dates of one repair"),
        "a_year": _whole(1, 12, "the most repaired dates of any 365 in a row"),
    },
    "repairs of a run that has just broken; left out: users can buy none",
)
_PAUSES = _object(
    ["dates_max", "dates_a_year"],
    {
        "dates_max": _whole(1, 365, "the most dates of one pause"),
        "dates_a_year": _whole(1, 365, "the most paused dates of any 365 in a row"),
    },
    "pauses of a streak; left out: users can have none",
)
_DAILY = _object(
    [],
    {
        "rest_days": {
            "type": "array",
            "items": {"enum": WEEKDAYS},
            "minItems": 1,
            "maxItems": REST_DAYS_MAX,
            "uniqueItems": True,
            "description": "the weekdays on which a date without activity is no miss, for all users",
        },
        "rest_days_chosen": _whole(1, REST_DAYS_MAX, "or how many weekdays each user may choose"),
        "day_starts_at": {
            "type": "string",
            "maxLength": 5,
            "pattern": DAY_START,
            "description": 'when dates begin by the clock on the wall, "00:00" to "06:00"; left out: "00:00"',
        },
    },
    "rest days of the daily streak, one of rest_days and rest_days_chosen, and when dates begin. Left out: "
    "no rest days, and midnight",
)
_LANGUAGE: Schema = {"type": "string", "pattern": LANGUAGE, "maxLength": LANGUAGE_LENGTH_MAX}
_REMINDERS = _object(
    ["at", "texts"],
    {
        "at": {
            "type": "string",
            "pattern": CLOCK,
            "description": f"{CLOCK_WORDS}, in the zone of the user's dates; a phone may choose another",
        },
        "texts": {"type": "object", "minProperties": 1}
        | _by_name(
            100,
            LANGUAGE,
            _object(
                ["title", "text"],
                {
                    "title": _text(100, "plain text"),
                    "text": _text(300, "plain text; {days} stands for the streak's length"),
                    "text_of_one": _text(300, "for a streak of one day; left out: `text`"),
                },
                "a reminder in one language",
            ),
            "by language, such as pt-BR",
        ),
        "language": _LANGUAGE
        | {"description": "the one of texts for people whose own is not there; default: en"},
    },
    "messages to phones that a streak ends tonight; left out: none",
)
_OFFLINE = _object(
    ["days_max", "days_a_year"],
    {
        "days_max": _whole(0, 30, "how old an event may be; 0 to 3: no older than without a receipt"),
        "days_a_year": _whole(0, 365, "on how many days of a year a user may be offline"),
    },
    "events that waited in a device, as a time receipt proves; left out: 14 and 60",
)
_EXPIRY = _object(
    [],
    {
        "after_days": _whole(1, DAYS_MAX, "so many days after the event's date"),
        "end_of": {
            "enum": list(PERIODS),
            "description": "or at the end of this period, counted from that date",
        },
    },
    "when points expire; exactly one of after_days and end_of. Left out: never",
)
_IMAGE_URL = _text(1000, "a picture: https://, or data:image/ for a small one")
_REWARD = _object(
    ["price_points", "brand"],
    {
        "price_points": _whole(1, AMOUNT_MAX, "the price of one; users never name it"),
        "brand": {
            "type": "string",
            "pattern": REWARD_NAME,
            "description": "whom the invoices name; each ledger entry has it",
        },
        "stock": _whole(0, AMOUNT_MAX, "how many there are in all; may only be raised. Left out: no limit"),
        "limit_per_user": _whole(1, 1_000_000, "how many one user may get; left out: any number"),
        "valid_from": _INSTANT,
        "valid_until": _INSTANT | {"description": "the first instant at which it is no longer offered"},
        "title": _text(100, "what people see in place of the id; plain text"),
        "description": _text(500, "what it is; plain text, may have several lines"),
        "image_url": _IMAGE_URL,
    },
    "one reward",
)
# Sections of questions. A stored book may have them, whatever the code has: so they are declared here.
_OF_QUESTIONS = {OF_PART: "questions"}
_ANSWERS = _object(
    ["points", "day_points_max"],
    {
        "points": _whole(0, DAY_POINTS_LIMIT, "of each answer"),
        "confidence_points": _whole(
            0, DAY_POINTS_LIMIT, "more, if the answer says how sure the person is; left out: none"
        ),
        "timing": _object(
            ["points", "from_ms", "to_ms"],
            {
                "points": _whole(0, DAY_POINTS_LIMIT, "more, if the answer took this long"),
                "from_ms": _whole(0, TOOK_MS_MAX, "from so many milliseconds on"),
                "to_ms": _whole(0, TOOK_MS_MAX, "to so many milliseconds, inclusive"),
            },
            "for answers given neither hastily nor late; left out: no such points",
        ),
        "day_points_max": _whole(
            1,
            DAY_POINTS_LIMIT,
            "the most that a person's answers of a date earn, by the version in force when the date begins",
        ),
    },
    "what answers to questions earn in their own stats; left out: nothing",
)
_SUM_LEAST: Schema = {"type": "number", "exclusiveMinimum": 0, "maximum": AMOUNT_MAX}
_NEEDS = _object(
    None,
    {
        NeedKind.ACTIVE_DAYS.value: _whole(1, 28),
        NeedKind.EVENTS.value: _whole(1, 10_000),
        NeedKind.SUM.value: _object(
            ["property", "at_least"],
            {
                "property": _PROPERTY | {"description": "a number that the data contract has"},
                "at_least": _SUM_LEAST | {"description": "has up to three decimals"},
            },
            "the sum of a property over the period's events",
        ),
    },
    "what each period needs; exactly one of active_days, events and sum",
)
_STREAK = _object(
    ["per", "needs"],
    {
        "per": {"enum": [each.value for each in StreakPeriod], "description": "a week begins on Monday"},
        "needs": _NEEDS,
        "event_types": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "maxItems": TYPES_MAX,
            "uniqueItems": True,
            "description": "the types that count; left out: all that keep streaks",
        },
        "freezes": _flag("whether a freeze covers a missed period; default: false"),
        "pauses": _flag("whether a pause covers a missed period; default: false"),
        "rest_days": _flag("per day: whether a rest date of `daily` is no miss; default: false"),
        "description": _note(500),
    },
    "one streak",
)
_CONDITION = _object(
    None,
    {
        ConditionKind.POINTS.value: _whole(1, AMOUNT_MAX, "points ever earned"),
        ConditionKind.COUNT.value: {"type": "string", "description": "events of this type"},
        ConditionKind.STREAK.value: {"type": "string", "description": "a streak of this book"},
        ConditionKind.SUM.value: _object(
            ["event_type", "property"],
            {"event_type": {"type": "string"}, "property": _PROPERTY},
            "the sum of a property over the events of a type",
        ),
        "at_least": _SUM_LEAST,
    },
    "points_earned; or one of count, sum and streak, with at_least",
)
_CONDITIONS: Schema = {"type": "array", "items": _CONDITION, "minItems": 1, "maxItems": 10}
_ACHIEVEMENT = _object(
    None,
    {
        "all": _CONDITIONS,
        "any": _CONDITIONS,
        "withdrawn": {
            "enum": ["never", "when_untrue"],
            "description": "whether a shown one is withdrawn when it is no longer true; default: never",
        },
        "history": _flag("whether its date may be before its declaration; default: false"),
        "points": _whole(1, POINTS_MAX, "a bonus, once a user; needs withdrawn: when_untrue. Left out: none"),
        "secret": _flag("whether only those who have it may know of it; default: false"),
        "title": _note(100),
        "description": _note(500),
        "image_url": _IMAGE_URL,
    },
    "one achievement; exactly one of all and any",
)
_LEVEL = _object(
    ["name", "from"],
    {
        "name": {"type": "string", "pattern": GOAL_NAME},
        "from": _whole(0, AMOUNT_MAX, "the least points ever earned; each level's is above the one before"),
        "title": _text(100, "what people see in place of the name; plain text"),
        "image_url": _IMAGE_URL,
    },
    "one level",
)
_DATE: Schema = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
_BOARD = _object(
    None,
    {
        "per": {
            "enum": [each.value for each in BoardPeriod],
            "description": "it begins anew with each; a week begins on Monday",
        },
        "from": _DATE | {"description": "or the first date of its only period, such as 2027-06-01"},
        "until": _DATE | {"description": "and the last one, included; up to 366 dates"},
        "group": {
            "type": "string",
            "pattern": GOAL_NAME,
            "description": "the attribute of users that divides it, such as class; left out: undivided",
        },
        "description": _note(500),
    },
    "one board of points; per, or from and until",
)
_LEAGUES = _object(
    ["board", "divisions", "size", "up", "down"],
    {
        "board": {"type": "string", "description": "a board of this book, per week and without group"},
        "divisions": {
            "type": "array",
            "items": {"type": "string", "pattern": GOAL_NAME},
            "minItems": 2,
            "maxItems": DIVISIONS_MAX,
            "uniqueItems": True,
            "description": "their names, from the lowest, in which everybody begins",
        },
        "size": _whole(SIZE_MIN, SIZE_MAX, "the most members of a cohort"),
        "up": _whole(1, SIZE_MAX, "how many of a full cohort go up; of a smaller one fewer, in proportion"),
        "down": _whole(0, SIZE_MAX, "how many go down; up + down is below size"),
    },
    "weekly leagues: cohorts, of which some members go up and some down. They earn nothing. Left out: none",
)
_FRIENDS = _object(
    ["max"],
    {"max": _whole(1, FRIENDS_MAX, "how many friends a user may have")},
    "friends and their common streaks; left out: there are none",
)
BOOK: Schema = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "A book of rules",
    **_object(
        ["event_types"],
        {
            "format": {"const": 1, "description": "of this document"},
            "event_types": {"type": "object", "minProperties": 1}
            | _by_name(TYPES_MAX, TYPE_NAME, _EVENT_TYPE, "by name"),
            "boosts": {"type": "array", "items": _BOOST, "maxItems": 100},
            "freezes": _FREEZES,
            "repairs": _REPAIRS,
            "pauses": _PAUSES,
            "daily": _DAILY,
            "reminders": _REMINDERS | _OF_QUESTIONS,
            "offline": _OFFLINE,
            "expiry": _EXPIRY,
            "rewards": _by_name(500, REWARD_NAME, _REWARD, "the catalogue, by id"),
            "answers": _ANSWERS | _OF_QUESTIONS,
            "streaks": _by_name(20, GOAL_NAME, _STREAK, "streaks besides the daily one, by name"),
            "achievements": _by_name(100, GOAL_NAME, _ACHIEVEMENT, "achievements, by name"),
            "levels": {
                "type": "array",
                "items": _LEVEL,
                "maxItems": 100,
                "description": "levels that users reach by points ever earned, from the lowest",
            },
            "boards": _by_name(BOARDS_MAX, GOAL_NAME, _BOARD, "boards by period, by name"),
            "leagues": _LEAGUES,
            "friends": _FRIENDS,
        },
        "what earns what",
    ),
}
