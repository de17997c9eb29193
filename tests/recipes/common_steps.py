"""What several recipes do, and the checks that notice it."""

from tests.recipes.scratch import Scratch
from tests.support.node_tools import packages

GENERATED = "tests/unit/lake/test_warehouse_columns.py"


def make_models(scratch: Scratch) -> None:
    scratch.must(scratch.python("-m", "analytics.generated_models"))


def make_template(scratch: Scratch) -> None:
    scratch.must(scratch.python("-m", "infra.assemble"))


def make_clients(scratch: Scratch) -> None:
    """Generate the clients' types, with this checkout's packages of npm; skips where there is no node."""
    modules = scratch.root / "client/typescript/node_modules"
    if not modules.exists():  # another recipe may have run before
        modules.symlink_to(packages().parent)
    scratch.must(scratch.python("-m", "infra.client_types"))
