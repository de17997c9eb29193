"""What a test changes of the deployed cloud for a while, and what a run that was killed has not put back."""

from collections.abc import Iterator
from contextlib import contextmanager

from local.paths import WAREHOUSE
from local.stack import Stack

NOWHERE = "duckdb:/proc/nowhere/w"


@contextmanager
def warehouse_away(stack: Stack) -> Iterator[None]:
    """Let the nightly run's function not find the warehouse during a `with` block."""
    _set_warehouse(stack, NOWHERE)
    try:
        yield
    finally:
        put_back(stack)


def put_back(stack: Stack) -> None:
    """Undo warehouse_away: `streakline up` deploys nothing again that it has deployed, so it would not."""
    _set_warehouse(stack, f"duckdb:{WAREHOUSE}")


def _set_warehouse(stack: Stack, url: str) -> None:
    functions, name = stack.client("lambda"), stack.outputs["WarehouseFunctionName"]
    variables = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    if variables["WAREHOUSE_URL"] != url:
        changed = {"Variables": {**variables, "WAREHOUSE_URL": url}}
        functions.update_function_configuration(FunctionName=name, Environment=changed)
