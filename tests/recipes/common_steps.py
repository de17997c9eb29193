"""What several recipes do, and the checks that notice it."""

from tests.recipes.scratch import Scratch

GENERATED = "tests/unit/lake/test_warehouse_columns.py"
PUBLISHED = "tests/unit/lake/test_published_fields.py"


def make_models(scratch: Scratch) -> None:
    scratch.must(scratch.python("-m", "analytics.generated_models"))


def make_template(scratch: Scratch) -> None:
    scratch.must(scratch.python("-m", "infra.assemble"))
