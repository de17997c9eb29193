"""`streakline warehouse dbt`: writes our models as a package of dbt, for analysts who work with it.

The package follows from the same declarations as the nightly run's models (sql/models, rules/lake). For
Redshift a model is our SELECT, word for word, with ref() and source() in the place of names. For DuckDB it is
that SELECT as the laptop's warehouse runs it: analytics/warehouse/dialect has translated it, because a macro
of dbt could neither know the columns' types, on which a translation depends, nor refuse what has none.

A test that dbt knows is declared beside its column. Every other test is a query for the rows that break it.
"""

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import duckdb
import yaml

from analytics.warehouse.build import replace_table
from analytics.warehouse.ddl import LOAD_NUMBER, SCHEMAS, declared_tables
from analytics.warehouse.duckdb_warehouse import sql_for
from analytics.warehouse.models import FOLDERS, LOAD_NUMBER_DOC, Model, ModelError, models, queries_of_tests
from local.command import command, option
from local.paths import WAREHOUSE
from local.stack import Stack
from rules.lake.entities import LOADED

PACKAGE = "streakline"
DUCKDB, REDSHIFT = "duckdb", "redshift"
ENGINE_NAMES = {DUCKDB: "DuckDB", REDSHIFT: "Redshift"}
VIEW, TABLE = "view", "table"
LAKE = "lake"
BUILT = ("facts", "dimensions", "marts")  # what the nightly run builds for analysts
MARK = "# Written by `streakline warehouse dbt`, which writes it anew: keep what is yours elsewhere.\n"
PROJECT = "dbt_project.yml"
FILE_NAME_MAX = 100
Query = Callable[[str], str]  # a query of ours as one of the engine's


@dataclass(frozen=True, slots=True)
class Package:
    """What a package is made of. models: in the order in which they can be built."""

    models: Mapping[str, Model]
    engine: str
    materialized: str
    tables: tuple[str, ...]  # of the schema `lake`
    host: str = ""  # Redshift's
    database: str = "streakline"  # Redshift's
    region: str = ""
    file: Path = WAREHOUSE  # the laptop's warehouse


@command("warehouse dbt streakline-dbt", "warehouse dbt streakline-dbt --engine redshift --models table")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@option(
    "--engine",
    type=click.Choice([DUCKDB, REDSHIFT]),
    help="whose SQL",
    show_default="that of the stack's warehouse",
)
@option(
    "--models",
    "materialized",
    type=click.Choice([VIEW, TABLE]),
    default=VIEW,
    help="what dbt makes of a model",
)
def dbt_command(stack: Stack, directory: Path, engine: str | None, materialized: str) -> dict[str, Any]:
    """Write our models as a package of dbt: sources, models, tests, descriptions.

    DIRECTORY is new or empty, or has such a package, which is replaced.
    """
    package = Package(
        models(stack.model_settings, stack.parts),
        engine or (DUCKDB if stack.is_laptop else REDSHIFT),
        materialized,
        tuple(declared_tables(stack.parts)),
        stack.outputs.get("WarehouseEndpoint", ""),
        stack.outputs.get("WarehouseDatabase", "streakline"),
        stack.region,
    )
    files = package_files(package)
    write_package(directory, files)
    tests = sum(name.startswith("tests/") for name in files)
    return {
        "directory": str(directory),
        "engine": package.engine,
        "models": len(package.models),
        "queries that test": tests,
    }


def write_package(directory: Path, files: Mapping[str, str]) -> None:
    """Write files by their names, in the place of an earlier package.

    Raises ValueError if the directory has other files.
    """
    project = directory / PROJECT
    if project.exists() and project.read_text(encoding="utf-8").startswith(MARK):
        for folder in ("models", "tests"):
            shutil.rmtree(directory / folder, ignore_errors=True)
    elif directory.exists() and any(directory.iterdir()):
        raise ValueError(f"{directory} has files that are not of such a package: name another directory")
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def package_files(package: Package) -> dict[str, str]:
    """Return the package's files: texts by name. Raises ModelError."""
    query = _queries_on_duckdb(package) if package.engine == DUCKDB else str
    files = {
        PROJECT: _yaml(_project(package)),
        "profiles.yml": _yaml(_profile(package)),
        "README.md": _readme(package),
        "models/sources.yml": _yaml({"version": 2, "sources": list(_sources(package))}),
    }
    described: dict[str, list[dict[str, Any]]] = {schema: [] for schema in FOLDERS}
    for model in package.models.values():
        schema, _, _ = model.name.partition(".")
        files[f"models/{schema}/{model_name(model.name)}.sql"] = (
            f"{_with_references(query(model.sql), model)}\n"
        )
        described[schema].append(_properties(model, package))
        for name, text in _tests(model):
            sql = _with_references(query(text), model)
            files[f"tests/{schema}/{_file_name(model, name, files)}.sql"] = f"-- {name}\n{sql}\n"
    for schema, listed in described.items():
        files[f"models/{schema}/{schema}.yml"] = _yaml({"version": 2, "models": listed})
    return files


def model_name(name: str) -> str:
    """Return a model's name in dbt, where schemas do not tell models apart: `marts_bonuses`."""
    return name.replace(".", "_")


def _queries_on_duckdb(package: Package) -> Query:
    """Return what translates a query, with an empty warehouse that knows all columns and their types."""
    connection = duckdb.connect()
    for schema in SCHEMAS:
        connection.execute(f"CREATE SCHEMA {schema}")
    declared = declared_tables()
    for table in package.tables:
        connection.execute(sql_for(connection, declared[table].sql) or "")
    for model in package.models.values():
        connection.execute(f"CREATE VIEW {model.name} AS {sql_for(connection, model.sql)}")
    return lambda sql: sql_for(connection, sql) or ""


def _with_references(sql: str, model: Model) -> str:
    """Return a query with ref() and source() in the place of the names of models and tables."""
    for name in sorted(set(re.findall(rf"\b(?:{'|'.join(SCHEMAS)})\.\w+", _without_texts(sql)))):
        schema, _, table = name.partition(".")
        reference = f"source('{LAKE}', '{table}')" if schema == LAKE else f"ref('{model_name(name)}')"
        sql = replace_table(sql, name, f"{{{{ {reference} }}}}")
        if re.search(rf"\b{name}\b", _without_texts(sql)):
            raise ModelError(f"{model.name}: {name} stands where dbt takes no reference")
    return sql


def _without_texts(sql: str) -> str:
    """Return a query without its comments and texts, which may have a table's name."""
    return re.sub(r"--[^\n]*|'(?:[^']|'')*'", "", sql)


def _tests(model: Model) -> Iterator[tuple[str, str]]:
    """Yield those tests that dbt has no word for."""
    for name, query in queries_of_tests(model):
        kind, _, rest = name.partition(" ")
        if kind in ("expression", "sql") or (kind == "unique" and "," in rest):
            yield name, query


def _file_name(model: Model, test: str, files: Mapping[str, str]) -> str:
    """Return a name for the file of a test that no other has: dbt names the test by it."""
    words = re.sub(r"\W+", "_", test).strip("_").lower()
    stem = f"{model_name(model.name)}__{words}"[:FILE_NAME_MAX].rstrip("_")
    taken = Counter(Path(name).stem.rstrip("0123456789") for name in files)[stem.rstrip("0123456789")]
    return f"{stem}_{taken + 1}" if taken else stem


def _properties(model: Model, package: Package) -> dict[str, Any]:
    """Return what dbt is told of a model, with the tests of single columns."""
    config: dict[str, Any] = {"alias": model.name.partition(".")[2]}
    if package.engine == REDSHIFT and model.dist:
        config["dist"] = model.dist
    if package.engine == REDSHIFT and model.sort:
        config |= {"sort": list(model.sort), "sort_type": "compound"}
    tests: dict[str, list[Any]] = {}
    for column in dict.fromkeys([*model.key, *model.tests.get("not_null", [])]):
        tests.setdefault(column, []).append("not_null")
    for columns in (list(model.key), model.tests.get("unique", [])):
        if len(columns) == 1:
            tests.setdefault(columns[0], []).append("unique")
    for column, values in model.tests.get("accepted_values", {}).items():
        arguments = {"values": values}
        if not all(isinstance(value, str) for value in values):
            arguments["quote"] = False
        tests.setdefault(column, []).append({"accepted_values": {"arguments": arguments}})
    for column, target in model.tests.get("relationships", {}).items():
        parent, _, field = target.rpartition(".")
        arguments = {"to": f"ref('{model_name(parent)}')", "field": field}
        tests.setdefault(column, []).append({"relationships": {"arguments": arguments}})
    columns = [
        {"name": name, "description": doc} | ({"data_tests": tests[name]} if name in tests else {})
        for name, doc in model.columns.items()
    ]
    return {"name": model_name(model.name), "description": model.grain, "config": config, "columns": columns}


def _sources(package: Package) -> Iterator[dict[str, Any]]:
    """Yield the lake's tables, of which models are made, and what the nightly run has built of them."""
    database = "warehouse" if package.engine == DUCKDB else package.database
    lake = [_lake_table(name) for name in package.tables]
    description = "What the nightly run has loaded: each row of the lake once, in its newest version."
    yield {"name": LAKE, "schema": LAKE, "database": database, "description": description, "tables": lake}
    for schema in BUILT:
        built = [
            {
                "name": model.name.partition(".")[2],
                "description": model.grain,
                "columns": [{"name": name, "description": doc} for name, doc in model.columns.items()],
            }
            for model in package.models.values()
            if model.name.startswith(f"{schema}.")
        ]
        description = "What the nightly run has built: the same rows as the package's models."
        yield {
            "name": schema,
            "schema": schema,
            "database": database,
            "description": description,
            "tables": built,
        }


def _lake_table(name: str) -> dict[str, Any]:
    entity = LOADED.get(name)
    if entity is None:
        return {"name": name, "description": "the nightly run's own bookkeeping"}
    columns = [{"name": field.name, "description": field.doc} for field in entity.fields]
    columns += [
        {"name": "extra", "description": "a row's further values, as JSON text"},
        {"name": LOAD_NUMBER, "description": LOAD_NUMBER_DOC},
    ]
    return {"name": name, "description": entity.doc, "columns": columns}


def _project(package: Package) -> dict[str, Any]:
    folders: dict[str, Any] = {schema: {"+schema": schema} for schema in FOLDERS}
    binding = (
        {"+bind": False} if package.engine == REDSHIFT else {}
    )  # else a dropped table would take the views with it
    return {
        "name": PACKAGE,
        "version": version(PACKAGE),
        "require-dbt-version": [
            ">=1.10.5",
            "<3.0.0",
        ],  # since then a test's arguments have a word of their own
        "profile": PACKAGE,
        "models": {PACKAGE: {"+materialized": package.materialized, **binding, **folders}},
    }


def _profile(package: Package) -> dict[str, Any]:
    """Return a connection with which the package runs by itself; in a project of yours that one's holds."""
    if package.engine == DUCKDB:
        target: dict[str, Any] = {
            "type": "duckdb",
            "path": "{{ env_var('STREAKLINE_DBT_FILE', 'streakline.duckdb') }}",
            "schema": "analytics",
            "attach": [
                {
                    "path": f"{{{{ env_var('STREAKLINE_WAREHOUSE', {str(package.file)!r}) }}}}",
                    "alias": "warehouse",
                    "read_only": True,
                }
            ],
            "settings": {"TimeZone": "UTC", "ieee_floating_point_ops": False},
        }
    else:
        target = {
            "type": "redshift",
            "method": "iam_role",
            "host": f"{{{{ env_var('STREAKLINE_WAREHOUSE', {package.host!r}) }}}}",
            "port": 5439,
            "dbname": package.database,
            "region": package.region,
            "schema": "analytics",
            "threads": 4,
        }
    return {PACKAGE: {"target": package.engine, "outputs": {package.engine: target}}}


def _readme(package: Package) -> str:
    return f"""# Streakline's models, for dbt

`streakline warehouse dbt` has written this package, in {ENGINE_NAMES[package.engine]}'s SQL.
Write it anew after each upgrade.

- `ref('marts_daily_actives')` is the model `marts.daily_actives`, which dbt builds in a schema of yours.
- `source('marts', 'daily_actives')` is the table that Streakline's nightly run has built.
- `source('lake', 'events')` is what both are made of.

By itself: `dbt build`. In a project of yours, packages.yml names it:

    packages:
      - local: ../streakline-dbt
"""


def _yaml(document: Any) -> str:
    return MARK + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)
