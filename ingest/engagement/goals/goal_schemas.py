"""JSON Schemas of streaks that the book declares, as answers show them."""

from ingest.web.json_schema import COUNT, FLAG, TEXT, Schema, list_of, open_object
from rules.book.goal_rules import ConditionKind, NeedKind, StreakPeriod
from rules.engagement.goals import PeriodReason
from rules.engagement.streak import StreakStatus

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
