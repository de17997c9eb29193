"""`streakline sql`: one query, answered by a stack's warehouse or lake.

It chooses the engine, and gives the rows as Arrow or pandas, on the terminal, or in a file.
"""

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import duckdb
import pyarrow as pa

from analytics.warehouse.dialect.parser import NotAsRedshift
from analytics.warehouse.duckdb_warehouse import DuckWarehouse, sql_for
from local.analyst import catalog, output
from local.analyst.output import Answer, QueryFailed, Tell, refusal_text
from local.analyst.read_only_sql import BYTE_ORDER_MARK, Value, over_files, read_only, split_queries
from local.command import FILE_OUT, command, json_text, option
from local.paths import WAREHOUSE
from local.stack import Stack, find, load

LAPTOP_ENGINE = "DuckDB"
BATCH_ROWS = 10_000
ON_WAREHOUSE, ON_LAKE = "warehouse", "lake"
OWN_WAREHOUSE = "OwnWarehouse"  # the parameter of a stack whose warehouse somebody else runs
WIDTH_ELSEWHERE = 200  # where the output is no terminal


@contextmanager
def laptop_answer(path: Path, query: str) -> Iterator[Answer]:
    """Ask a laptop's warehouse. Until the block ends nobody can write to its file. Raises QueryFailed."""
    if not path.exists():
        raise QueryFailed(f"there is no warehouse at {path}: `streakline night run` makes it")
    with ExitStack() as opened:
        try:
            connection = opened.enter_context(DuckWarehouse(path, read_only=True).reading())
            reader = connection.sql(sql_for(connection, query)).to_arrow_reader(BATCH_ROWS)
        except (duckdb.Error, NotAsRedshift, pa.ArrowException) as error:
            raise QueryFailed(refusal_text(LAPTOP_ENGINE, error)) from error
        opened.enter_context(
            closing(reader)
        )  # an open reader with unread rows would block the next query for ever
        yield Answer.of(LAPTOP_ENGINE, reader.schema, _batches(reader))


def _batches(reader: Any) -> Iterator[pa.RecordBatch]:
    """Yield what DuckDB answers. Raises QueryFailed if it fails after the first rows."""
    try:
        yield from reader
    except (duckdb.Error, pa.ArrowException, OSError) as error:  # Arrow makes an OSError of DuckDB's
        raise QueryFailed(refusal_text(LAPTOP_ENGINE, error)) from error


def frame(sql: str, **options: Any) -> Any:
    """Return a query's rows as a pandas DataFrame with Arrow's types. options: those of `table`.

    With Arrow's types a whole number stays one beside a NULL, and a decimal number stays exact.
    """
    import pandas as pd  # type: ignore[import-untyped]

    return table(sql, **options).to_pandas(types_mapper=pd.ArrowDtype)


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
    """Return a stack on AWS by its name; None: the laptop's."""
    return load() if name is None else find(name, region)


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

    tell: is called with lines of progress. file: the laptop's warehouse. Raises QueryFailed, and what
    botocore raises.
    """
    query = read_only(sql, parameters)
    if on == ON_LAKE:
        from local.analyst import aws_engines  # here, because its libraries take a second to import

        lake_query = over_files(query, aws_engines.lake_dialect(stack), stack.model_settings, stack.parts)
        answering = aws_engines.by_athena(stack, lake_query, tell)
    elif on != ON_WAREHOUSE:
        raise QueryFailed(f"{on} is neither {ON_WAREHOUSE} nor {ON_LAKE}")
    elif stack.is_laptop:
        answering = laptop_answer(file or WAREHOUSE, query)
    else:
        answering = _redshift(stack, query, tell)
    with answering as answer:
        yield answer


@contextmanager
def _redshift(stack: Stack, query: str, tell: Tell) -> Iterator[Answer]:
    from analytics.warehouse import redshift_client  # here, because their libraries take a second to import
    from local.analyst import aws_engines

    workgroup, database = warehouse_of(stack)
    host = stack.outputs.get("WarehouseEndpoint", "")
    if host and aws_engines.is_reachable(host):
        session = redshift_client.connect(host, database, workgroup=workgroup, region=stack.region)
        with session as connection, aws_engines.by_driver(connection, query) as answer:
            yield answer
        return
    data_api = stack.client("redshift-data")
    with aws_engines.by_data_api(data_api, workgroup, database, query, tell) as answer:
        yield answer


def warehouse_of(stack: Stack) -> tuple[str, str]:
    """Return the workgroup and the database of a stack on AWS. Raises QueryFailed if it has no warehouse.

    The secret in the URL of somebody else's warehouse is for the nightly run. Analysts sign in as themselves.
    """
    if "WarehouseWorkgroup" in stack.outputs:
        return stack.outputs["WarehouseWorkgroup"], stack.outputs["WarehouseDatabase"]
    # redshift://WORKGROUP/DATABASE[?secret_arn=ARN],WORKGROUP_ARN,COPY_ROLE_ARN; or "", or "none"
    address, *_ = stack.parameters.get(OWN_WAREHOUSE, "").split(",")
    url = urlsplit(address)
    if url.scheme == "redshift":
        return url.netloc, url.path.strip("/")
    raise QueryFailed(f"the stack {stack.name} has no warehouse: ask its lake (--on lake)")


@command(
    'sql "SELECT * FROM marts.daily_actives ORDER BY date_day DESC"',
    'sql --on lake "SELECT COUNT(*) FROM lake.events" --json',
    "sql",
)
@click.argument("query", required=False)
@option("--on", type=click.Choice([ON_WAREHOUSE, ON_LAKE]), default=ON_WAREHOUSE, help="what to ask")
@option("--out", type=FILE_OUT, help="write all rows, as .csv or .parquet", show_default="a table")
def sql(stack: Stack, query: str | None, on: str, out: Path | None, as_json: bool) -> None:
    """Ask the warehouse or the lake, in Redshift's SQL.

    Without QUERY this is a shell: a query ends with a semicolon, `.tables` and `.describe NAME` say what
    there is, `.quit` ends it. `SHOW TABLES` and `DESCRIBE NAME` are taken everywhere.
    """
    if query is None:
        if out is not None:
            raise click.UsageError("--out goes with a query")
        names = list(catalog.names(stack.parts))
        shell(lambda query: answer_query(stack, query, on, as_json=as_json), names)
    else:
        answer_query(stack, query, on, out, as_json=as_json)


def answer_query(
    stack: Stack, query: str, on: str, out: Path | None = None, *, as_json: bool = False
) -> None:
    """Ask, and print the rows or write them to a file.

    Raises QueryFailed, ValueError and what botocore raises.
    """
    if (listed := catalog.answer(query, stack.parts)) is not None:
        print(json_text(listed) if as_json else catalog.as_text(listed))
        return
    if out is not None:
        output.check_file(out)
    began, tell = time.monotonic(), _teller()
    with ask(stack, query, on=on, tell=tell) as answer:
        tell("")  # clears the line of progress
        if as_json:
            rows = answer.table()
            print(json_text(rows.to_pylist()))
            summary = f"{rows.num_rows} rows"
        else:
            summary = _write_file(answer, out) if out else _print_rows(answer)
    scanned = "" if answer.scanned_bytes is None else f", {answer.scanned_bytes:,} bytes scanned"
    print(f"{summary}; {answer.engine}, {time.monotonic() - began:.1f} s{scanned}", file=sys.stderr)


def _write_file(answer: Answer, path: Path) -> str:
    return f"{output.write(answer, path):,} rows in {path}"


def _print_rows(answer: Answer) -> str:
    rows, are_more = output.first_rows(answer)
    print(output.text_table(rows, shutil.get_terminal_size((WIDTH_ELSEWHERE, 24)).columns))
    return f"the first {rows.num_rows} rows: --out FILE has all" if are_more else f"{rows.num_rows} rows"


def _teller() -> Tell:
    """Return a function that shows progress on one line of a terminal, and nowhere else."""
    if not sys.stderr.isatty():
        return lambda _: None
    return lambda text: print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def shell(answer_query: Callable[[str], None], names: Sequence[str]) -> None:
    """Answer queries of the standard input, one after the other. After a refused query it goes on.

    answer_query: prints the answer to a query, or raises QueryFailed. names: of tables and views, which a
    terminal completes. Raises SystemExit at the end if a query
    of a file was refused.
    """
    is_terminal = sys.stdin.isatty()
    if is_terminal:
        import readline

        readline.set_completer(_completer(names))
        readline.set_completer_delims(" \t\n,()=")
        readline.parse_and_bind("tab: complete")
        print("A query ends with a semicolon. `.tables`, `.describe NAME`, `.quit`.")
    are_refused = False
    for query in _queries(is_terminal=is_terminal):
        try:
            answer_query(query)
        except QueryFailed as refused:
            print(refused, file=sys.stderr)
            are_refused = True
    if are_refused and not is_terminal:
        raise SystemExit(1)


def _queries(*, is_terminal: bool) -> Iterator[str]:
    """Yield the queries and commands of the standard input. Ctrl-C forgets what was typed of a query."""
    text = ""
    while True:
        prompt = ("...> " if text.strip() else "sql> ") if is_terminal else ""
        try:
            line = input(prompt).removeprefix(BYTE_ORDER_MARK)
        except EOFError:
            break
        except KeyboardInterrupt:
            if not is_terminal:
                raise
            print()
            text = ""
            continue
        if not text.strip() and line.startswith("."):
            if line.rstrip() in (".quit", ".exit"):
                return
            yield line.rstrip()
        else:
            *complete, text = split_queries(f"{text}{line}\n")
            yield from complete
    if text.strip():
        yield text


def _completer(names: Sequence[str]) -> Callable[[str, int], str | None]:
    """Return a completer for readline, which asks for the matches of a text one by one, by their index."""

    def complete(text: str, index: int) -> str | None:
        matches = [name for name in names if name.startswith(text)]
        return matches[index] if index < len(matches) else None

    return complete
