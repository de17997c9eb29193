"""docs/recipes/add-a-lake-column.md, step by step, with its example."""

from tests.recipes.common_steps import GENERATED, make_models
from tests.recipes.scratch import Scratch, Step

WRITERS = "tests/unit/lake/test_writers.py"


def _field(scratch: Scratch) -> None:
    scratch.after(
        "rules/lake/engagement_entities.py",
        '        Required("created_at", TIMESTAMP, "when the date became active"),\n',
        '        Field("event_types_count", INTEGER, "how many event types the date has"),\n',
    )


def _writer(scratch: Scratch) -> None:
    scratch.replace(
        "rules/lake/engagement_entities.py",
        'return others | {"points_by_type": points_by_type(by_cap)}',
        """by_type = points_by_type(by_cap)
    return others | {"points_by_type": by_type, "event_types_count": len(by_type)}""",
    )


def _facts(scratch: Scratch) -> None:
    model, column = "sql/models/facts/daily_activity", "points_earned"
    scratch.replace(f"{model}.sql", f"    {column},\n", f"    event_types_count,\n    {column},\n")
    line = "  event_types_count: how many event types the date has\n"
    scratch.replace(f"{model}.yml", f"  {column}:", f"{line}  {column}:")


COLUMN = (
    Step("rules/lake/engagement_entities.py", _field, WRITERS, "declares no event_types_count"),
    Step(
        "rules/lake/engagement_entities.py",
        _writer,
        WRITERS,
        "no writer fills daily_activity.event_types_count",
    ),
    Step("make models", make_models, GENERATED),
    Step("sql/models/facts/daily_activity", _facts, GENERATED),
)
