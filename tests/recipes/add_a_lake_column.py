"""docs/recipes/add-a-lake-column.md, step by step, with its example."""

from tests.recipes.common_steps import GENERATED, PUBLISHED, make_models
from tests.recipes.scratch import Scratch, Step


def _field(scratch: Scratch) -> None:
    scratch.after(
        "rules/lake/engagement_entities.py",
        '        Field("created_at", TIMESTAMP, "when the date was first credited", True),\n',
        '        Field("event_types_count", INTEGER, "how many event types the date has"),\n',
    )


def _writer(scratch: Scratch) -> None:
    scratch.replace(
        "rules/lake/engagement_entities.py",
        'return others | {"points_by_type": points_by_type(by_cap)}',
        'return others | {"points_by_type": points_by_type(by_cap), "event_types_count": len(by_cap)}',
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
    Step("rules/lake/engagement_entities.py", _writer, "tests/unit/lake/test_writers.py"),
    Step("sql/ddl/daily_activity.sql", _column, GENERATED),
    Step("make models", make_models, GENERATED),
    Step("sql/models/facts/daily_activity", _facts, GENERATED),
    Step("tests/unit/lake/published_fields.txt", _published_field, PUBLISHED),
)
