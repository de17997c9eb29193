"""The warehouse's models: sql/models/{folder}/NAME.sql has one SELECT in Redshift's SQL.

NAME.yml beside it has: grain (a sentence), key (columns), materialized (view, table or incremental), dist and
sort (columns by which Redshift spreads and sorts the rows), columns (name: what it says), left_out (of facts:
which columns of staging are not here, and why), tests (model_tests.py).
An incremental model has a column load_number: the newest load that brought any of the rows that a row is made
of.
Rows of later loads replace the rows with the same values in the columns `replace` (the key, unless named).
Example: marts.leaderboard_history replaces whole periods.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import sqlglot
import yaml
from sqlglot import exp

from analytics.warehouse.ddl import SQL
from analytics.warehouse.translate import REDSHIFT

FOLDERS = ("staging", "facts", "dimensions", "marts")
MATERIALIZED = ("view", "table", "incremental")
_FIELDS = {"grain", "key", "materialized", "replace", "dist", "sort", "columns", "left_out", "tests"}


class ModelError(ValueError):
    """A model's files are wrong. The message has the model's name and the fault."""


@dataclass(frozen=True, slots=True)
class Model:
    """One table or view. reads: the tables and models that it selects from, as schema.name."""

    name: str
    sql: str
    reads: frozenset[str]
    grain: str
    key: tuple[str, ...]
    materialized: str
    columns: Mapping[str, str]
    tests: Mapping[str, Any] = field(default_factory=dict)
    dist: str | None = None
    sort: tuple[str, ...] = ()
    replace: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)


@cache
def models(folder: Path = SQL / "models") -> dict[str, Model]:
    """Return all models by name, each after those that it reads. Raises ModelError."""
    found = {}
    for schema in FOLDERS:
        for path in sorted((folder / schema).glob("*.sql")):
            model = _read(f"{schema}.{path.stem}", path)
            found[model.name] = model
    order = TopologicalSorter({model.name: model.reads & found.keys() for model in found.values()})
    ordered = {name: found[name] for name in order.static_order()}
    for model in ordered.values():
        _check_sources(model, ordered)
    return ordered


def _read(name: str, path: Path) -> Model:
    sql = path.read_text(encoding="utf-8").strip().rstrip(";")
    about = yaml.safe_load(path.with_suffix(".yml").read_text(encoding="utf-8"))
    if unknown := about.keys() - _FIELDS:
        raise ModelError(f"{name}: unknown {sorted(unknown)}")
    if about["materialized"] not in MATERIALIZED:
        raise ModelError(f"{name}: materialized is one of {MATERIALIZED}")
    return Model(
        name,
        sql,
        _tables(sql),
        about["grain"],
        tuple(about["key"]),
        about["materialized"],
        about["columns"],
        about.get("tests") or {},
        about.get("dist"),
        tuple(about.get("sort") or ()),
        tuple(about.get("replace") or about["key"]),
        about.get("left_out") or {},
    )


def _tables(sql: str) -> frozenset[str]:
    tree = sqlglot.parse_one(sql, read=REDSHIFT)
    return frozenset(f"{table.db}.{table.name}" for table in tree.find_all(exp.Table) if table.db)


def _check_sources(model: Model, known: Mapping[str, Model]) -> None:
    for read in model.reads:
        if read.partition(".")[0] in FOLDERS and read not in known:
            raise ModelError(f"{model.name} reads {read}, which is no model")
    if model.materialized == "incremental" and len(lake_tables(model, known)) != 1:
        # Each lake table counts its own load numbers, so those of two tables cannot be compared.
        raise ModelError(f"{model.name} is incremental, so it must follow from one lake table")


def ancestors(model: Model, known: Mapping[str, Model]) -> list[Model]:
    """Return the models that a model is made from, directly or not, sorted by name."""
    found: dict[str, Model] = {}
    left = [known[name] for name in model.reads if name in known]
    while left:
        each = left.pop()
        if each.name not in found:
            found[each.name] = each
            left += [known[name] for name in each.reads if name in known]
    return [found[name] for name in sorted(found)]


def lake_tables(model: Model, known: Mapping[str, Model]) -> set[str]:
    """Return the lake tables that a model reads, directly or through other models."""
    family: Sequence[Model] = [model, *ancestors(model, known)]
    return {read for each in family for read in each.reads if read.startswith("lake.")}


def fingerprint(model: Model, known: Mapping[str, Model]) -> str:
    """Return a digest of the SQL of a model and of all models that it reads, directly or not."""
    family = [model, *ancestors(model, known)]
    text = "\n".join((f"{each.name} {each.dist} {each.sort} {each.sql}") for each in family)
    return hashlib.sha256(text.encode()).hexdigest()
