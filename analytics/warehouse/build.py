"""Builds the models: views and tables anew, incremental models from what was loaded since their last build.

Each model is built in one transaction, so a reader sees it either as it was or as it is. Building again
changes nothing.
"""

from collections.abc import Collection, Mapping

from analytics.warehouse.merge_sql import LOAD_NUMBER
from analytics.warehouse.models import Model, fingerprint, models
from analytics.warehouse.statements import literal
from analytics.warehouse.warehouse import Warehouse

_RELATIONS = """SELECT table_schema || '.' || table_name AS name, table_type AS kind
FROM information_schema.tables
WHERE table_schema IN ('staging', 'facts', 'dimensions', 'marts')"""
_BUILDS = "SELECT model, fingerprint FROM lake.builds"


def build(warehouse: Warehouse, only: Collection[str] | None = None, full: bool = False) -> list[str]:
    """Build models in the order of their dependencies; returns their names. only: names, or None for all.

    full: build incremental models anew too. Raises ModelError, StatementFailed.
    """
    known = models()
    with warehouse.kept_open():
        kinds = {row["name"]: row["kind"] for row in warehouse.rows(_RELATIONS)}
        built = {row["model"]: row["fingerprint"] for row in warehouse.rows(_BUILDS)}
        done = []
        for model in known.values():
            if only is None or model.name in only:
                is_current = not full and built.get(model.name) == fingerprint(model, known)
                warehouse.run(statements(model, known, kinds.get(model.name), is_current))
                done.append(model.name)
    return done


def statements(model: Model, known: Mapping[str, Model], kind: str | None, is_current: bool) -> list[str]:
    """Return the SQL that builds a model.

    kind: what has the model's name now (VIEW, BASE TABLE, or None for nothing). is_current: whether that was
    built by the model's present SQL.
    """
    if model.materialized == "view":
        # Late binding, because the tables that the view reads are dropped and made anew.
        return [*_drop(model, kind), f"CREATE VIEW {model.name} AS {model.sql} WITH NO SCHEMA BINDING"]
    if model.materialized == "table":
        return _replace(model, kind)
    if kind in (None, "VIEW") or not is_current:
        return [*_replace(model, kind), *_record(model, known)]
    return _increment(model)


def _drop(model: Model, kind: str | None) -> list[str]:
    return [f"DROP {'VIEW' if kind == 'VIEW' else 'TABLE'} {model.name} CASCADE"] if kind else []


def _replace(model: Model, kind: str | None) -> list[str]:
    new, name = f"{model.name}__new", model.name.partition(".")[2]
    dist = f"DISTSTYLE KEY DISTKEY ({model.dist}) " if model.dist else ""
    sort = f"COMPOUND SORTKEY ({', '.join(model.sort)}) " if model.sort else ""
    return [
        f"CREATE TABLE {new} {dist}{sort}AS {model.sql}",
        *_drop(model, kind),
        f"ALTER TABLE {new} RENAME TO {name}",
    ]


def _increment(model: Model) -> list[str]:
    columns = ", ".join(f'"{name}"' for name in model.columns)
    same = " AND ".join(f'{model.name}."{key}" = fresh."{key}"' for key in model.replace)
    newer = f"{LOAD_NUMBER} > (SELECT COALESCE(MAX({LOAD_NUMBER}), 0) FROM {model.name})"  # noqa: S608
    return [
        f"CREATE TEMP TABLE fresh AS SELECT {columns} FROM ({model.sql}) AS model WHERE {newer}",  # noqa: S608
        f"DELETE FROM {model.name} USING fresh WHERE {same}",  # noqa: S608
        f"INSERT INTO {model.name} ({columns}) SELECT {columns} FROM fresh",  # noqa: S608
    ]


def _record(model: Model, known: Mapping[str, Model]) -> list[str]:
    values = f"({literal(model.name)}, {literal(fingerprint(model, known))})"
    return [
        f"DELETE FROM lake.builds WHERE model = {literal(model.name)}",  # noqa: S608
        f"INSERT INTO lake.builds VALUES {values}",  # noqa: S608
    ]
