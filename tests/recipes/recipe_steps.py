"""The recipes of docs/recipes, step by step, with the example that each page tells."""

from collections.abc import Mapping

from tests.recipes.scratch import Scratch, Step

GENERATED = ("tests/unit/lake/test_warehouse_columns.py",)
PUBLISHED = ("tests/unit/lake/test_published_fields.py",)


def make_models(scratch: Scratch) -> None:
    scratch.must(scratch.python("-m", "analytics.generated_models"))


# ---- add-an-event-type ---------------------------------------------------------------------------
def _rule(scratch: Scratch) -> None:
    scratch.after(
        "rules/engagement/points.py",
        '        "APP_OPENED": Rule(points=1, daily_points_max=1),\n',
        '        "BOOK_FINISHED": Rule(points=30, daily_points_max=60),\n',
    )


def _rule_in_the_docs(scratch: Scratch) -> None:
    scratch.after("docs/rules.md", "| `APP_OPENED` | 1 | 1 |\n", "| `BOOK_FINISHED` | 30 | 60 |\n")


EVENT_TYPE = (
    Step("rules/engagement/points.py", _rule, ("tests/unit/architecture/test_documentation.py",)),
    Step("sql/models/dimensions/event_types.sql", make_models, GENERATED),
    Step("docs/rules.md", _rule_in_the_docs, ("tests/unit/architecture/test_documentation.py",)),
)

# ---- add-a-webhook-source ------------------------------------------------------------------------
SIGN_UP = '''"""A newsletter's sign-up form: {"signup_id", "signed_up_at", "email", "list"}."""

from typing import Any

from ingest.leads.decoding import Context, Decoded, checked, identities, moment, text_id
from ingest.web.json_schema import Schema, closed_object
from rules.leads.lead_events import FORM_SUBMITTED

TEXT: Schema = {"type": "string", "minLength": 1}
SIGN_UP = closed_object(
    ["signup_id", "signed_up_at", "email"],
    {"signup_id": TEXT, "signed_up_at": TEXT, "email": TEXT, "list": TEXT},
)


def decode(payload: Any, context: Context) -> list[Decoded]:
    """Read the sign-up."""
    body = checked(SIGN_UP, payload)
    return [
        Decoded(
            external_event_id=text_id(body["signup_id"], "signup_id"),
            event_type=FORM_SUBMITTED,
            occurred_at=moment(body["signed_up_at"], "signed_up_at"),
            identities=identities([("email", body["email"])], context, "email"),
            object_id=body.get("list"),
            object_id_ref="list" if "list" in body else None,
        )
    ]
'''
SIGN_UP_SAMPLE = """{
  "private": ["ada@example.com"],
  "payloads": [
    {"signup_id": "s-1", "signed_up_at": "2026-03-01T10:00:00Z", "email": "ada@example.com", "list": "weekly"}
  ]
}
"""


def _decoder(scratch: Scratch) -> None:
    scratch.write("ingest/leads/sources/newsletter.py", SIGN_UP)


def _sample(scratch: Scratch) -> None:
    scratch.write("tests/webhooks/newsletter.json", SIGN_UP_SAMPLE)


SOURCE = (
    Step("ingest/leads/sources/newsletter.py", _decoder, ("tests/unit/leads/test_lead_sources.py",)),
    Step("tests/webhooks/newsletter.json", _sample, ("tests/unit/leads/test_lead_sources.py",)),
)


# ---- add-a-lead-feature --------------------------------------------------------------------------
def _feature(scratch: Scratch) -> None:
    scratch.replace(
        "rules/leads/features.py",
        """        "campaigns of 90 dates without any reaction, the last three dates' left out",
        CAMPAIGN_DAYS_MAX,
    ),
)
""",
        """        "campaigns of 90 dates without any reaction, the last three dates' left out",
        CAMPAIGN_DAYS_MAX,
    ),
    Feature("frequency_purchases_7d", A, Aggregate.COUNT, Unit.COUNT, "orders in 7 dates", 7),
)
""",
    )


def _plain_reading(scratch: Scratch) -> None:
    scratch.after(
        "tests/support/lead_histories.py",
        '        "campaign_ignored": _ignored(own, age),\n',
        '        "frequency_purchases_7d": sum(age(each) < 7 for each in orders),\n',
    )


def _feature_column(scratch: Scratch) -> None:
    scratch.after(
        "sql/ddl/lead_features.sql",
        "    campaign_ignored BIGINT ENCODE AZ64,\n",
        "    frequency_purchases_7d BIGINT ENCODE AZ64,\n",
    )


def _published_feature(scratch: Scratch) -> None:
    scratch.after(
        "tests/unit/lake/published_fields.txt",
        "lead_features.campaign_ignored integer\n",
        "lead_features.frequency_purchases_7d integer\n",
    )


FEATURE = (
    Step("rules/leads/features.py", _feature, GENERATED, "sql/ddl/lead_features.sql"),
    Step("tests/support/lead_histories.py", _plain_reading, ("tests/unit/leads/test_feature_readings.py",)),
    Step("sql/ddl/lead_features.sql", _feature_column, GENERATED),
    Step("make models", make_models, GENERATED),
    Step("tests/unit/lake/published_fields.txt", _published_feature, PUBLISHED),
)


# ---- add-a-lake-column ---------------------------------------------------------------------------
def _field(scratch: Scratch) -> None:
    scratch.after(
        "rules/lake/engagement_entities.py",
        '        Field("created_at", TIMESTAMP, "when the date was first credited", True),\n',
        '        Field("event_types_count", INTEGER, "how many event types the date has"),\n',
    )


def _writer(scratch: Scratch) -> None:
    scratch.after(
        "rules/lake/entities.py",
        '    "events": lambda row, _, corrected: event_row(row, corrected),\n',
        '    "daily_activity": lambda row, *_: row | {"event_types_count": len(row.get("points_by_type") or {})},\n',
    )


def _column(scratch: Scratch) -> None:
    scratch.after(
        "sql/ddl/daily_activity.sql",
        "    created_at TIMESTAMP NOT NULL ENCODE AZ64,\n",
        "    event_types_count BIGINT ENCODE AZ64,\n",
    )


def _facts(scratch: Scratch) -> None:
    scratch.after("sql/models/facts/daily_activity.sql", "    points_earned,\n", "    event_types_count,\n")
    scratch.after(
        "sql/models/facts/daily_activity.yml",
        "  points_earned: points earned by them\n",
        "  event_types_count: how many event types the date has\n",
    )


def _published_field(scratch: Scratch) -> None:
    scratch.after(
        "tests/unit/lake/published_fields.txt",
        "daily_activity.created_at timestamp\n",
        "daily_activity.event_types_count integer\n",
    )


COLUMN = (
    Step("rules/lake/engagement_entities.py", _field, GENERATED, "sql/ddl/daily_activity.sql"),
    Step("rules/lake/entities.py", _writer, ("tests/unit/lake/test_writers.py",)),
    Step("sql/ddl/daily_activity.sql", _column, GENERATED),
    Step("make models", make_models, GENERATED),
    Step("sql/models/facts/daily_activity", _facts, GENERATED),
    Step("tests/unit/lake/published_fields.txt", _published_field, PUBLISHED),
)

RECIPES: Mapping[str, tuple[Step, ...]] = {
    "add-an-event-type": EVENT_TYPE,
    "add-a-webhook-source": SOURCE,
    "add-a-lead-feature": FEATURE,
    "add-a-lake-column": COLUMN,
}
