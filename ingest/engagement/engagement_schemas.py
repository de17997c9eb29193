"""The bodies and answers of accounts, goals, rewards, amnesties and leaderboards, as JSON Schema.

The doors validate with these schemas, and the OpenAPI document shows the same ones.
"""

from ingest.web.json_schema import (
    COUNT,
    DATE,
    FLAG,
    INSTANT,
    KEY,
    NEXT_PAGE,
    SHORT,
    TEXT,
    USER_ID,
    Schema,
    closed_object,
    list_of,
    open_object,
)
from rules.book.goal_rules import ConditionKind, NeedKind, StreakPeriod
from rules.book.rewards import REWARD_NAME
from rules.engagement.goals import PeriodReason
from rules.engagement.lots import HOLD_DEFAULT, HOLD_MAX
from rules.engagement.streak import DateReason, StreakStatus

REDEMPTION = closed_object(
    {
        "reward?": {
            "type": "string",
            "pattern": REWARD_NAME,
            "description": "a reward of the book (GET /v1/rewards), at the book's price",
        },
        "price_points?": {
            "type": "integer",
            "minimum": 1,
            "maximum": 1_000_000_000,
            "description": "the price that the user was shown: at another one nothing is redeemed",
        },
        "points?": {
            "type": "integer",
            "minimum": 1,
            "maximum": 1_000_000_000,
            "description": "in place of `reward`, with reward_id: streakline/fulfilment or streakline/admin",
        },
        "reward_id?": {"type": "string", "pattern": SHORT, "description": "what the points are spent on"},
        "idempotency_key": KEY,
    },
    example={"reward": "mug", "price_points": 120, "idempotency_key": "3f1c"},
)
HOLD = closed_object(
    {
        "points": {"type": "integer", "minimum": 1, "maximum": 1_000_000_000},
        "reward_id": {"type": "string", "pattern": SHORT},
        "idempotency_key": KEY,
        "seconds?": {
            "type": "integer",
            "minimum": 1,
            "maximum": int(HOLD_MAX.total_seconds()),
            "description": f"for how long; {int(HOLD_DEFAULT.total_seconds())} if it is left out",
        },
    }
)
CAPTURE = closed_object(
    {
        "points?": {
            "type": "integer",
            "minimum": 1,
            "description": "how many of the held points are spent; all if it is left out",
        }
    }
)
FREEZE = closed_object(
    {
        "idempotency_key?": KEY,
        "granted_on?": {
            "type": "string",
            "pattern": DATE,
            "description": "admins: the first date that the freeze can cover (default: the user's today)",
        },
    }
)
ALIAS = closed_object(
    {
        "alias": {
            "type": ["string", "null"],
            "pattern": r"^(?!([A-Za-z]+[ _.-]+){2}[0-9]+$)[A-Za-z0-9][A-Za-z0-9 _.-]{1,22}[A-Za-z0-9]$",
            "description": "3 to 24 letters, digits, spaces, dots, dashes, but not two words and a number, as"
            " pseudonyms are; null: a pseudonym. It is no proof: two users may have the same",
        }
    }
)
ALIAS_VIEW = closed_object(
    {
        "user_id": TEXT,
        "alias": {"type": ["string", "null"]},
        "shown_as": {"type": "string", "description": "the alias, or the pseudonym"},
    }
)
TIMEZONE = closed_object({"timezone": {"type": "string", "minLength": 1, "maxLength": 64}})
PAUSE = closed_object(
    {
        "first": {"type": "string", "pattern": DATE, "description": "not before the user's today"},
        "last": {"type": "string", "pattern": DATE, "description": "at most 90 days after the first"},
    }
)

RESULTS = closed_object(
    {
        "accepted": {"type": "integer"},
        "duplicates": {"type": "integer"},
        "rejected": {"type": "integer", "description": "conflicts included"},
        "results": {
            "type": "array",
            "items": closed_object(
                {
                    "idempotency_key": {"type": ["string", "null"]},
                    "status": {"type": "string", "enum": ["accepted", "duplicate", "conflict", "rejected"]},
                    "event_id?": TEXT,
                    "error?": {
                        "type": "object",
                        "description": "code, message, field; details: all fields, if several are faulty",
                    },
                }
            ),
        },
    }
)
ENTRY: Schema = open_object(
    {
        "entry_id": TEXT,
        "kind": TEXT,
        "points": {"type": "integer", "description": "signed"},
        "balance": {"type": "integer", "description": "after this entry; below 0: a debt"},
        "debt?": {"type": "integer", "minimum": 1, "description": "what is owed after this entry"},
        "reason?": {"type": "string", "description": "of a CLAWBACK or RERATE, and of an EARN of 0 points"},
        "created_at": TEXT,
        "occurred_at?": INSTANT | {"description": "when its event happened"},
        "duplicate?": FLAG,
    }
)
CLAWBACK = closed_object(
    {
        "event_id": {"type": "string", "minLength": 28, "maxLength": 128},
        "reason": {
            "type": "string",
            "pattern": r"^(?=.*\S)[^\u0000-\u001f]{1,200}$",
            "description": "why; the user sees it in the ledger",
        },
        "idempotency_key": KEY,
    }
)
HOLD_ID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
HOLD_VIEW = closed_object(
    {
        "hold_id": TEXT,
        "points": {"type": "integer", "minimum": 1},
        "reward_id": TEXT,
        "held_at": INSTANT,
        "until": {"type": "string", "format": "date-time", "description": "then it lapses by itself"},
        "status": {"type": "string", "enum": ["held", "captured", "released", "lapsed"]},
        "duplicate?": FLAG,
    }
)
BALANCE = closed_object(
    {
        "user_id": TEXT,
        "balance?": {"type": "integer", "description": "of the newest ledger entry; below 0: a debt"},
        "held?": {"type": "integer", "minimum": 0, "description": "points that open holds reserve"},
        "available?": {"type": "integer", "minimum": 0, "description": "what can be spent: balance - held"},
        "debt?": {
            "type": "integer",
            "minimum": 0,
            "description": "what is owed: what is earned next pays it",
        },
        "as_of": INSTANT,
        "known_balance?": {"type": "integer", "description": "with as_of: of the newest entry then"},
        "true_balance?": {
            "type": "integer",
            "description": "with as_of: with what was written later of then",
        },
        "holds?": list_of(HOLD_VIEW),
        "expiring?": {
            "type": "array",
            "description": "what is left of each lot that is yet to expire, the next one first",
            "items": closed_object({"at": INSTANT, "points": {"type": "integer", "minimum": 1}}),
        },
    }
)
PROFILE: Schema = open_object(
    {
        "user_id": TEXT,
        "current_streak": COUNT,
        "longest_streak": COUNT,
        "streak_status": {"type": "string", "enum": ["active", "at_risk", "broken", "none"]},
        "last_activity_date": {"type": ["string", "null"]},
        "timezone": TEXT,
        "total_bestie_points": COUNT,
        "balance": {"type": "integer", "description": "below 0: a debt"},
        "available?": {"type": "integer", "minimum": 0, "description": "what can be spent: balance - held"},
        "debt?": {
            "type": "integer",
            "minimum": 0,
            "description": "what is owed: what is earned next pays it",
        },
        "freezes_available": {"type": "integer", "description": "below 0: a debt"},
        "active_days": COUNT,
        "as_of?": TEXT,
    }
)
_REASONS: Schema = list_of(TEXT)
REVIEW = closed_object(
    {
        "user_id": TEXT,
        "under_review": {"type": "boolean", "description": "true: redemptions wait"},
        "evidence": _REASONS,
        "released_at?": {"type": ["string", "null"]},
    }
)
REVIEW_LIST = closed_object(
    {
        "accounts": {
            "type": "array",
            "items": closed_object(
                {"user_id": TEXT, "since": {"type": ["string", "null"]}, "evidence": _REASONS}
            ),
        },
        "cursor": NEXT_PAGE,
    }
)
COVER_REASONS = [
    each.value for each in (DateReason.FREEZE, DateReason.PAUSE, DateReason.SKIPPED, DateReason.AMNESTY)
]
_DATE: Schema = {"type": "string", "format": "date"}
ACTIVITY_VIEW: Schema = open_object(
    {
        "activity": {
            "type": "array",
            "items": open_object(
                {
                    "activity_date": _DATE,
                    "events_count": {"type": "integer", "minimum": 1},
                    "points_earned": {"type": "integer"},
                    "points_by_type?": {"type": "object"},
                    "first_event_id?": TEXT,
                }
            ),
        },
        "covered?": {
            "type": "array",
            "items": closed_object({"date": _DATE, "reason": {"type": "string", "enum": COVER_REASONS}}),
        },
        "cursor": NEXT_PAGE,
    }
)
AS_OF: Schema = {"type": "string", "format": "date-time", "description": "when the scores were compared"}
BOARD_ROW = closed_object(
    {
        "rank": {"type": "integer", "minimum": 1},
        "alias": {
            "type": "string",
            "description": "chosen by the user, or a stable pseudonym: Swift Heron 42",
        },
        "score": {"type": "integer", "minimum": 1},
        "is_me": FLAG,
    }
)
IS_OLD = {
    "type": "boolean",
    "description": "the board is older than it is in ordinary running: its cache is away",
}
TOP_LIST = closed_object(
    {"board": TEXT, "region": TEXT, "as_of": AS_OF, "is_old": IS_OLD, "entries": list_of(BOARD_ROW)}
)
RANK = closed_object(
    {
        "board": TEXT,
        "region": TEXT,
        "user_id": TEXT,
        "alias": {"type": "string", "description": "under which others see the user"},
        "score": {"type": "integer", "minimum": 0, "description": "as it is now"},
        "rank": {"type": ["integer", "null"], "description": "null: not on this board"},
        "as_of": AS_OF,
        "is_old": IS_OLD,
    }
)


# JSON Schemas of streaks that the book declares, as answers show them.


_AMOUNT: Schema = {"type": "number", "minimum": 0}
_PER: Schema = {"type": "string", "enum": [each.value for each in StreakPeriod]}
_PERIOD: Schema = open_object(
    {
        "first": TEXT,
        "last": TEXT,
        "counts?": {"type": "string", "enum": [each.value for each in NeedKind]},
        "property?": TEXT,
        "needs?": _AMOUNT,
        "have?": _AMOUNT,
        "missing?": _AMOUNT,
    },
    description="a date, a week or a month, with what it needs; without that: nothing is asked",
)
_STREAK: Schema = open_object(
    {
        "name": {"type": "string", "description": "daily: the streak of the profile"},
        "per": _PER,
        "current_streak": COUNT,
        "longest_streak": COUNT,
        "status": {"type": "string", "enum": [each.value for each in StreakStatus]},
        "reached": COUNT | {"description": "periods that were reached, in all"},
        "last_reached": {"type": ["string", "null"], "description": "the first date of the newest one"},
        "freezes_used?": COUNT,
        "period?": _PERIOD,
    }
)
STREAKS_VIEW: Schema = open_object({"user_id": TEXT, "as_of": TEXT, "streaks": list_of(_STREAK)})
PERIOD_VIEW: Schema = open_object(
    {
        "user_id": TEXT,
        "name": TEXT,
        "date": TEXT,
        "counts": FLAG,
        "reason": {"type": "string", "enum": [each.value for each in PeriodReason]},
        "rule": TEXT,
        "rules_version": COUNT,
        "streak_length": COUNT,
        "period": _PERIOD,
        "contributions": {"type": "array", "items": open_object({"date": TEXT, "adds": _AMOUNT})},
    }
)
_CONDITION: Schema = open_object(
    {
        "counts": {"type": "string", "enum": [each.value for each in ConditionKind]},
        "event_type?": TEXT,
        "property?": TEXT,
        "streak?": TEXT,
        "needs": _AMOUNT,
        "have": _AMOUNT | {"description": "of a streak: the longest"},
    }
)
_ACHIEVEMENT: Schema = open_object(
    {
        "name": TEXT,
        "title": TEXT,
        "achieved": FLAG,
        "achieved_at": {
            "type": ["string", "null"],
            "description": "when the event occurred by which it became true",
        },
        "needs": {"type": "string", "enum": ["all", "any"]},
        "conditions": list_of(_CONDITION),
    }
)
ACHIEVEMENTS_VIEW: Schema = open_object({"user_id": TEXT, "achievements": list_of(_ACHIEVEMENT)})


# The bodies and answers of amnesties.


USERS_MAX = 100
ZONES_MAX = 600
REASON_MAX = 500
_INSTANT: Schema = INSTANT | {"maxLength": 40}
_USERS: Schema = {
    "type": "array",
    "items": {"type": "string", "pattern": USER_ID},
    "minItems": 1,
    "maxItems": USERS_MAX,
}
DECLARATION: Schema = closed_object(
    {
        "from": {**_INSTANT, "description": "when the outage began"},
        "to": {**_INSTANT, "description": "when it was over"},
        "zones?": {
            "type": "array",
            "items": {"type": "string", "maxLength": 64},
            "minItems": 1,
            "maxItems": ZONES_MAX,
            "description": "whom it concerns, by zone; left out: everybody",
        },
        "listed?": {"type": "boolean", "description": "only for those to whom it is applied by name"},
        "reason": {"type": "string", "minLength": 1, "maxLength": REASON_MAX},
    }
)
APPLICATION: Schema = closed_object(
    {"users": _USERS, "dry_run?": {"type": "boolean", "description": "only say what would become of them"}}
)
AMNESTY: Schema = {
    "type": "object",
    "properties": {
        "number": {"type": "integer"},
        "from": _INSTANT,
        "to": _INSTANT,
        "zones": {"type": ["array", "null"], "items": TEXT},
        "listed": FLAG,
        "reason": TEXT,
        "author": TEXT,
        "declared_at": _INSTANT,
        "revoked_at": {"type": ["string", "null"]},
    },
}
AMNESTIES: Schema = {"type": "object", "properties": {"amnesties": list_of(AMNESTY)}}
APPLICATION_RESULT: Schema = {
    "type": "object",
    "properties": {
        "users": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "user_id": TEXT,
                    "changed": FLAG,
                    "streak_before": {"type": "integer"},
                    "streak_after": {"type": "integer"},
                    "freezes_returned": {"type": "integer"},
                },
            },
        }
    },
}


# What the routes of rewards answer, as JSON Schema.


_TITLE: Schema = {"type": "string", "description": "what people see in place of the id; plain text"}
_REWARD: dict[str, Schema] = {
    "reward": {"type": "string", "description": "its id"},
    "title?": _TITLE,
    "description?": {"type": "string", "description": "plain text, which may have lines"},
    "image_url?": {
        "type": "string",
        "format": "uri",
        "description": "a picture of it (https or data:image/)",
    },
    "price_points": {"type": "integer", "minimum": 1},
    "brand": TEXT,
    "limit_per_user?": {"type": "integer", "minimum": 1},
    "valid_from?": INSTANT,
    "valid_until?": INSTANT,
    "left?": {**COUNT, "description": "about so many; left out: no end of them"},
}
_VERSION: Schema = {"type": "integer", "description": "of the book of rules"}
CATALOGUE = closed_object(
    {"version": _VERSION, "rewards": list_of(closed_object(_REWARD)), "cursor": NEXT_PAGE}
)
_REWARD_FOR_USER = closed_object(
    {
        **_REWARD,
        "affordable": {"type": "boolean", "description": "whether `available` covers the price"},
        "left_for_user?": {**COUNT, "description": "how many more the user may have"},
    }
)
USER_CATALOGUE = closed_object(
    {
        "version": _VERSION,
        "rewards": list_of(_REWARD_FOR_USER),
        "cursor": NEXT_PAGE,
        "user_id": TEXT,
        "available": {**COUNT, "description": "points that can be spent"},
    }
)
REDEMPTION_VIEW = closed_object(
    {
        "entry_id": {"type": "string", "description": "of the ledger entry"},
        "user_id": TEXT,
        "reward": {"type": "string", "description": "its id"},
        "title?": _TITLE | {"description": "what the reward was called when it was redeemed; plain text"},
        "brand": TEXT,
        "price_points": {"type": "integer", "minimum": 1},
        "rules_version": {"type": "integer", "description": "of the book that named the price"},
        "created_at": INSTANT,
        "fulfilment": {"type": "string", "enum": ["requested", "fulfilled", "failed", "reversed"]},
        "changed_at?": {**INSTANT, "description": "when that changed"},
        "duplicate?": {"type": "boolean", "description": "it stood so before"},
    }
)
REDEMPTIONS = closed_object({"redemptions": list_of(REDEMPTION_VIEW), "cursor": NEXT_PAGE})
