"""docs/recipes/add-an-event-type.md, step by step, with its example."""

from tests.recipes.common_steps import GENERATED, make_models
from tests.recipes.scratch import Scratch, Step


def _rule(scratch: Scratch) -> None:
    scratch.after(
        "rules/engagement/points.py",
        '        "APP_OPENED": PointsRule(points=1, daily_points_max=1),\n',
        '        "BOOK_FINISHED": PointsRule(points=30, daily_points_max=60),\n',
    )


def _rule_in_the_docs(scratch: Scratch) -> None:
    scratch.after("docs/rules.md", "| `APP_OPENED` | 1 | 1 |\n", "| `BOOK_FINISHED` | 30 | 60 |\n")


EVENT_TYPE = (
    Step("rules/engagement/points.py", _rule, "tests/unit/architecture/test_documentation.py"),
    Step("sql/models/dimensions/event_types.sql", make_models, GENERATED),
    Step("docs/rules.md", _rule_in_the_docs, "tests/unit/architecture/test_documentation.py"),
)
