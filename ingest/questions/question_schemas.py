"""The bodies and answers of the routes of questions, answers, stats and subscriptions, as JSON Schema."""

from ingest.web.json_schema import (
    ANY,
    FLAG,
    KEY,
    TEXT,
    Schema,
    closed_object,
    flag,
    list_of,
    one_of,
    open_object,
    text,
    text_or_null,
    whole,
)
from rules.book.reminders import CLOCK as REMINDER_CLOCK
from rules.book.reminders import CLOCK_WORDS, LANGUAGE, LANGUAGE_LENGTH_MAX
from rules.questions.answer_stats import CATEGORIES_KEPT
from rules.questions.notifications import INTERVAL_MINUTES_MAX
from rules.questions.questions import CATEGORY_DEFAULT, OPEN_DEFAULT, OPEN_MAX, QuestionStatus, QuestionType

TAG = r"^[a-z0-9][a-z0-9_-]{0,31}$"
TAGS_MAX = 10
UUID = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
FINGERPRINT_HASH = r"^[0-9a-f]{32}$"


OPTION = text(minLength=1, maxLength=200)
QUESTION = closed_object(
    {
        "idempotency_key": KEY | {"description": "scope: the agent; the same body again gives the question"},
        "type": one_of(QuestionType),
        "prompt": text("plain text", minLength=1, maxLength=1000),
        "options?": list_of(
            OPTION,
            minItems=2,
            maxItems=10,
            description="of a multiple_choice question; they differ in more than case and spaces",
        ),
        "audience?": list_of(
            text(pattern=TAG),
            maxItems=TAGS_MAX,
            description="tags, one of which a person's token has; empty: everybody",
        ),
        "category?": text(f"default: {CATEGORY_DEFAULT}", pattern=TAG),
        "required_responses": whole("", 1, 1000),
        "closes_at?": text(
            f"RFC 3339, at most {OPEN_MAX.days} days ahead; default: in"
            f" {OPEN_DEFAULT.total_seconds() / 3600:.0f} hours",
            maxLength=40,
        ),
    },
    example={
        "idempotency_key": "q-1",
        "type": "multiple_choice",
        "prompt": "Which of the two headlines would you read?",
        "options": ["The first", "The second"],
        "audience": ["readers"],
        "required_responses": 5,
    },
)
ANSWER = closed_object(
    {
        "selected_option?": whole("of multiple_choice: from 0", 0, 9),
        "answer?": text("of text: what the person says", minLength=1, maxLength=2000),
        "confidence?": whole("", 1, 5),
        "response_time_ms?": whole("", 0, 86_400_000),
        "timezone?": text(
            "IANA name or offset (-07:00); decides the activity date; default: UTC", minLength=1, maxLength=64
        ),
        "fingerprint?": text(
            "agents: whose answer is relayed; kept as a keyed hash only", minLength=1, maxLength=256
        ),
    },
    example={"selected_option": 0, "confidence": 4, "response_time_ms": 5200, "timezone": "Europe/Madrid"},
)


def _texts(*names: str) -> dict[str, Schema]:
    return dict.fromkeys(names, TEXT)


_NUMBER = whole()
# What a person has said.
_GIVEN = {"selected_option?": _NUMBER, "answer?": TEXT, "confidence?": _NUMBER, "response_time_ms?": _NUMBER}
STATUS = one_of(QuestionStatus)
QUESTION_VIEW = open_object(
    {
        **_texts("question_id", "agent_id", "type", "prompt"),
        "options": list_of(TEXT),
        "audience": list_of(TEXT),
        "category": TEXT,
        "required_responses": _NUMBER,
        "current_responses": _NUMBER,
        "status": STATUS,
        **_texts("created_at", "closes_at", "closed_at?"),
        "duplicate?": FLAG,
    }
)
QUESTIONS_VIEW = open_object(
    {"questions": list_of(QUESTION_VIEW), "cursor": text_or_null("where to go on, also after a short page")}
)
ANSWER_RECEIPT = open_object(
    {
        "question_id": TEXT,
        "response_id": TEXT,
        "number": whole("its place among the answers", 1),
        "status": STATUS,
        "current_responses?": _NUMBER,
        "points": whole("before the daily cap"),
        "points_for": ANY,
        **_texts("created_at", "activity_date?", "timezone?"),
    }
)
RESPONSES_VIEW = open_object(
    {
        "question_id": TEXT,
        "status": STATUS,
        "current_responses": _NUMBER,
        "required_responses?": _NUMBER,
        "responses": list_of(
            open_object(
                {
                    "response_id": TEXT,
                    "number": _NUMBER,
                    **_GIVEN,
                    "created_at": TEXT,
                }
            )
        ),
        "cursor": text("for `after`"),
        "done": flag("no answer will follow after the cursor"),
    }
)
OWN_ANSWERS = open_object(
    {
        "answers": list_of(
            open_object(
                {
                    **_texts("question_id", "response_id", "type", "category"),
                    **_GIVEN,
                    "points": whole("before the daily cap"),
                    **_texts("created_at", "activity_date?", "timezone?"),
                }
            )
        ),
        "cursor": text_or_null(),
    }
)
STATS_VIEW = open_object(
    {
        "fingerprint": TEXT,
        "alias": TEXT,
        "total_points": _NUMBER,
        "total_answers": _NUMBER,
        "streak_days": _NUMBER,
        "longest_streak_days": _NUMBER,
        "streak_status": one_of(["active", "at_risk", "broken", "none"]),
        "streak_last_date": text_or_null(),
        "timezone": TEXT,
        "badges": list_of(TEXT),
        "badges_earned?": {
            "type": "array",
            "items": closed_object({"badge": TEXT, "title": TEXT, "earned_on": TEXT}),
        },
        "answers_by_category": {
            "type": "object",
            "additionalProperties": _NUMBER,
            "description": f"the first {CATEGORIES_KEPT} categories; *: answers in all others",
        },
        "created_at": text_or_null("of the first answer"),
    }
)
LEADERS = open_object(
    {
        "entries": list_of(
            closed_object(
                {"rank": _NUMBER, "alias": TEXT, "points": _NUMBER, "total_answers": _NUMBER, "is_me": FLAG}
            )
        )
    }
)


CLOCK = text(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")

AUDIENCE = list_of(
    text(pattern=TAG),
    maxItems=TAGS_MAX,
    uniqueItems=True,
    description="those of the token's tags to hear of, beside questions without tags; default: all",
)
INTERVAL = whole(
    "the least minutes between two announcements (default 60); 0: each one is sent", 0, INTERVAL_MINUTES_MAX
)
ZONE = text("of the quiet hours: IANA name or offset (-07:00); default UTC", minLength=1, maxLength=64)
QUIET_HOURS: Schema = {
    "type": ["object", "null"],
    "required": ["from", "to"],
    "properties": {"from": CLOCK, "to": CLOCK},
    "additionalProperties": False,
    "description": "wall-clock times, the first included; may wrap midnight; nothing is sent late",
}
REMINDERS = flag("a message in the evening while the streak would end tonight (default false)")
REMINDERS_AT = text_or_null(
    f"the hour of that message, {CLOCK_WORDS} in the zone of the user's dates; null or left out: the book's",
    pattern=REMINDER_CLOCK,
)
REMINDER_LANGUAGE = text_or_null(
    "of that message: a language tag such as pt-BR; null or left out: the book's default",
    pattern=LANGUAGE,
    maxLength=LANGUAGE_LENGTH_MAX,
)

SUBSCRIPTION = closed_object(
    {
        "fcm_token": text(
            "of the phone; registered by another person, it is theirs from then on", pattern=r"^[!-~]{1,512}$"
        ),
        "audience?": AUDIENCE,
        "min_interval_minutes?": INTERVAL,
        "timezone?": ZONE,
        "quiet_hours?": QUIET_HOURS,
        "streak_reminders?": REMINDERS,
        "reminders_at?": REMINDERS_AT,
        "language?": REMINDER_LANGUAGE,
    },
    example={
        "fcm_token": "bk3RNwTe3H0:CI2k_HHwgIpoDKCIZvvDMExUdFQ3P1",
        "audience": ["data"],
        "min_interval_minutes": 240,
        "timezone": "Europe/Berlin",
        "quiet_hours": {"from": "22:00", "to": "07:00"},
        "streak_reminders": True,
        "reminders_at": "18:30",
        "language": "de",
    },
)
SUBSCRIPTION_VIEW = open_object(
    {
        "subscription_id": text(pattern=UUID),
        "audience": AUDIENCE,
        "min_interval_minutes": INTERVAL,
        "timezone": ZONE,
        "quiet_hours": QUIET_HOURS,
        "streak_reminders": REMINDERS,
        "reminders_at": REMINDERS_AT,
        "language": REMINDER_LANGUAGE,
        "created_at": TEXT,
        "updated_at": TEXT,
    }
)
