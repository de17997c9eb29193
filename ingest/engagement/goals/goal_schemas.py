"""JSON Schemas of streaks that the book declares, as answers show them."""

from ingest.web.json_schema import Schema
from rules.book.achievement_rules import ConditionKind
from rules.book.streak_rules import NeedKind, StreakPeriod
from rules.engagement.goals.goal_reasons import PeriodReason
from rules.engagement.streaks import StreakStatus

_TEXT: Schema = {"type": "string"}
_WHOLE: Schema = {"type": "integer", "minimum": 0}
_AMOUNT: Schema = {"type": "number", "minimum": 0}
_PER: Schema = {"type": "string", "enum": [each.value for each in StreakPeriod]}
_PERIOD: Schema = {
    "type": "object",
    "required": ["first", "last"],
    "description": "a date, a week or a month, with what it needs; without that: nothing is asked",
    "properties": {
        "first": _TEXT,
        "last": _TEXT,
        "counts": {"type": "string", "enum": [each.value for each in NeedKind]},
        "property": _TEXT,
        "needs": _AMOUNT,
        "have": _AMOUNT,
        "missing": _AMOUNT,
    },
}
_STREAK: Schema = {
    "type": "object",
    "required": ["name", "per", "current_streak", "longest_streak", "status", "reached", "last_reached"],
    "properties": {
        "name": {"type": "string", "description": "daily: the streak of the profile"},
        "per": _PER,
        "current_streak": _WHOLE,
        "longest_streak": _WHOLE,
        "status": {"type": "string", "enum": [each.value for each in StreakStatus]},
        "reached": _WHOLE | {"description": "periods that were reached, in all"},
        "last_reached": {"type": ["string", "null"], "description": "the first date of the newest one"},
        "freezes_used": _WHOLE,
        "period": _PERIOD,
    },
}
STREAKS_VIEW: Schema = {
    "type": "object",
    "required": ["user_id", "as_of", "streaks"],
    "properties": {
        "user_id": _TEXT,
        "as_of": _TEXT,
        "streaks": {"type": "array", "items": _STREAK},
    },
}
PERIOD_VIEW: Schema = {
    "type": "object",
    "required": [
        *("user_id", "name", "date", "counts", "reason", "rule", "rules_version", "streak_length"),
        *("period", "contributions"),
    ],
    "properties": {
        "user_id": _TEXT,
        "name": _TEXT,
        "date": _TEXT,
        "counts": {"type": "boolean"},
        "reason": {"type": "string", "enum": [each.value for each in PeriodReason]},
        "rule": _TEXT,
        "rules_version": _WHOLE,
        "streak_length": _WHOLE,
        "period": _PERIOD,
        "contributions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["date", "adds"],
                "properties": {"date": _TEXT, "adds": _AMOUNT},
            },
        },
    },
}
_CONDITION: Schema = {
    "type": "object",
    "required": ["counts", "needs", "have"],
    "properties": {
        "counts": {"type": "string", "enum": [each.value for each in ConditionKind]},
        "event_type": _TEXT,
        "property": _TEXT,
        "streak": _TEXT,
        "needs": _AMOUNT,
        "have": _AMOUNT | {"description": "of a streak: the longest"},
    },
}
_ACHIEVEMENT: Schema = {
    "type": "object",
    "required": ["name", "title", "achieved", "achieved_at", "needs", "conditions"],
    "properties": {
        "name": _TEXT,
        "title": _TEXT,
        "achieved": {"type": "boolean"},
        "achieved_at": {
            "type": ["string", "null"],
            "description": "when the event occurred by which it became true",
        },
        "needs": {"type": "string", "enum": ["all", "any"]},
        "conditions": {"type": "array", "items": _CONDITION},
    },
}
ACHIEVEMENTS_VIEW: Schema = {
    "type": "object",
    "required": ["user_id", "achievements"],
    "properties": {"user_id": _TEXT, "achievements": {"type": "array", "items": _ACHIEVEMENT}},
}
