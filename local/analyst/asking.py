"""Asks one question of a stack: chooses the engine, and gives the rows as Arrow or pandas."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from analytics.warehouse import analyst_clients
from local.analyst import lake_sql, on_athena, on_laptop, on_redshift
from local.analyst.answer import Answer, QueryFailed, Tell
from local.analyst.question import Value, read_only
from local.paths import WAREHOUSE
from local.stack import Stack, load

ON_WAREHOUSE, ON_LAKE = "warehouse", "lake"
OWN_WAREHOUSE = "OwnWarehouse"  # the parameter of a stack whose warehouse somebody else runs


def frame(sql: str, **more: Any) -> Any:
    """Return a query's rows as a pandas DataFrame with Arrow's types; takes what `table` takes.

    With Arrow's types a whole number stays one beside a NULL, and a decimal number stays exact.
    """
    import pandas as pd  # type: ignore[import-untyped]

    return table(sql, **more).to_pandas(types_mapper=pd.ArrowDtype)


def table(
    sql: str,
    *,
    on: str = ON_WAREHOUSE,
    stack_name: str | None = None,
    region: str | None = None,
    parameters: Mapping[str, Value] | None = None,
) -> pa.Table:
    """Return a query's rows as an Arrow table.

    sql: one query in Redshift's SQL; on: warehouse or lake; stack_name: a stack on AWS, None: the laptop's;
    parameters: a value for each :name in the query. Raises QueryFailed and what botocore raises.
    """
    with ask(_stack(stack_name, region), sql, on=on, parameters=parameters) as answer:
        return answer.table()


def _stack(name: str | None, region: str | None) -> Stack:
    if name is None:
        return load()
    from local.stack import find

    return find(name, region)


def _silent(_: str) -> None:
    pass


@contextmanager
def ask(
    stack: Stack,
    sql: str,
    *,
    on: str = ON_WAREHOUSE,
    parameters: Mapping[str, Value] | None = None,
    tell: Tell = _silent,
    file: Path | None = None,
) -> Iterator[Answer]:
    """Ask a stack; the answer can be read until the block ends.

    tell: is told of progress; file: the laptop's warehouse. Raises QueryFailed, and what botocore raises.
    """
    query = read_only(sql, parameters)
    if on == ON_LAKE:
        lake = on_athena.Lake.of(stack)
        over_files = lake_sql.over_files(query, lake.dialect, stack.campaign_grace_days)
        asked = on_athena.answer(lake, over_files, tell)
    elif on != ON_WAREHOUSE:
        raise QueryFailed(f"{on} is neither {ON_WAREHOUSE} nor {ON_LAKE}")
    elif stack.is_laptop:
        asked = on_laptop.answer(file or WAREHOUSE, query)
    else:
        asked = _redshift(stack, query, tell)
    with asked as answer:
        yield answer


@contextmanager
def _redshift(stack: Stack, query: str, tell: Tell) -> Iterator[Answer]:
    workgroup, database = warehouse_of(stack)
    host = stack.outputs.get("WarehouseEndpoint", "")
    if host and on_redshift.is_reachable(host):
        session = analyst_clients.connect(host, database, workgroup=workgroup, region=stack.region)
        with session as connection, on_redshift.by_driver(connection, query) as answer:
            yield answer
        return
    data_api = stack.client("redshift-data")
    with on_redshift.by_data_api(data_api, workgroup, database, query, tell) as answer:
        yield answer


def warehouse_of(stack: Stack) -> tuple[str, str]:
    """Return the workgroup and the database of a stack on AWS. Raises QueryFailed if it has no warehouse.

    Whoever runs the warehouse, analysts sign in as themselves, and not by the secret of the nightly run.
    """
    if "WarehouseWorkgroup" in stack.outputs:
        return stack.outputs["WarehouseWorkgroup"], stack.outputs["WarehouseDatabase"]
    url = urlsplit(stack.parameters.get(OWN_WAREHOUSE, "").partition(",")[0])
    if url.scheme == "redshift":
        return url.netloc, url.path.strip("/")
    raise QueryFailed(f"the stack {stack.name} has no warehouse: ask its lake (--on lake)")
