"""Builds the models (models.py) from the rows that were loaded since the last build, or from all rows.

`build` builds all models; a night's steps (analytics/steps/warehouse_function.py) call `Builder` model by
model. It decides what to do with a model (`statements`), and which of its rows are tested (`scope`). Below it
is the SQL of the ways to build, and at the end the dates whose rows are built anew. models.py says which
kinds of models there are.

Each model is built in one transaction, so a reader sees either all of the old rows or all of the new ones.
Building again changes nothing. A table is emptied and filled, and not dropped, unless its SQL has changed: a
DROP would wait for every reader's open transaction, and keep later readers waiting.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from adapters.settings.choices import MODEL_SETTINGS, ModelSettings
from analytics.warehouse.ddl import LOAD_NUMBER
from analytics.warehouse.models import ALL, Model, Scope, entities_of, fingerprint, models
from analytics.warehouse.statements import literal
from analytics.warehouse.warehouse import Warehouse
from rules.days import DAY
from rules.lake.entities import LOADED
from rules.parts import ALL_PARTS, Part

SPANS_MAX = 16  # in a condition: a statement may repeat it for each table and test, and takes 100 KB at most
Span = tuple[date, date]  # both included
_RELATIONS = """SELECT table_schema || '.' || table_name AS name, table_type AS kind
FROM information_schema.tables
WHERE table_schema IN ('staging', 'facts', 'dimensions', 'marts')"""
_BUILDS = "SELECT model, fingerprint, loads, tested FROM lake.builds"
_LOADS = f"SELECT entity, MAX({LOAD_NUMBER}) AS newest FROM lake.loads GROUP BY entity"  # noqa: S608 (a constant)
Loads = Mapping[str, int]  # the newest load number by lake table


def build(
    warehouse: Warehouse,
    only: Collection[str] | None = None,
    full: bool = False,
    settings: ModelSettings = MODEL_SETTINGS,
) -> list[str]:
    """Build models in the order of their dependencies. Returns their names.

    only: the names of these models; None: all. full: build all of them anew. settings: see `models`.
    Raises ModelError, StatementFailed.
    """
    with warehouse.kept_open():
        builder = Builder.read(warehouse, full, settings)
        names = [name for name in builder.model_of if only is None or name in only]
        for name in names:
            builder.build(name)
        return names


@dataclass(frozen=True, slots=True)
class ModelBuild:
    """The last build of a model, as lake.builds has it."""

    fingerprint: str  # of the SQL that it was built by
    loads: Loads  # the newest loads whose rows the model has
    tested: Loads | None  # the loads that the model had when its tests last succeeded; None: they never have


@dataclass(slots=True)
class Builder:
    """Builds models one by one."""

    warehouse: Warehouse
    full: bool  # whether all models are built anew
    model_of: Mapping[str, Model]  # all models, by name
    kinds: Mapping[str, str]  # BASE TABLE or VIEW, by name of a relation that exists
    last_builds: Mapping[str, ModelBuild]  # by model
    loads: Loads  # the newest ones before the first model was built

    @classmethod
    def read(
        cls,
        warehouse: Warehouse,
        full: bool = False,
        settings: ModelSettings = MODEL_SETTINGS,
        deployed: Collection[Part] = ALL_PARTS,
    ) -> "Builder":
        """Read the relations, builds and loads of a warehouse. Raises ModelError, StatementFailed.

        settings, deployed: see `models`.
        """
        # Loads are read first. If rows are loaded meanwhile, the next build takes them, perhaps a second
        # time.
        loads = {row["entity"]: int(row["newest"]) for row in warehouse.rows(_LOADS)}
        kinds = {row["name"]: row["kind"] for row in warehouse.rows(_RELATIONS)}
        last_builds = {
            row["model"]: ModelBuild(
                row["fingerprint"], read_loads(row["loads"]) or {}, read_loads(row["tested"])
            )
            for row in warehouse.rows(_BUILDS)
        }
        return cls(warehouse, full, models(settings, deployed), kinds, last_builds, loads)

    def build(self, name: str) -> bool:
        """Build one model, after the models that it reads. Returns whether anything was to be done."""
        model = self.model_of[name]
        statements = self.statements(model)
        if statements:
            self.warehouse.run([*statements, *self._record(model)])
        return bool(statements)

    def statements(self, model: Model) -> list[str]:
        """Return the SQL that builds a model. It is empty if no row has changed that the model reads."""
        kind, last = self.kinds.get(model.name), self._last_build(model)
        wanted_kind = "VIEW" if model.materialized == "view" else "BASE TABLE"
        if last is None or kind != wanted_kind:
            return _create(model, kind)
        if model.materialized == "view" or self._has_all(model, last.loads):
            return []
        if model.materialized == "table":
            return [f"DELETE FROM {model.name}", _insert(model, "", model.sql)]  # noqa: S608
        if not model.by_date:  # its rows have load numbers
            (entity,) = entities_of(model, self.model_of)
            loaded = join_days(self._loaded_days(model, last.loads))
            return _increment(model, last.loads.get(entity, 0), loaded)
        return _rebuild_dates(model, self.touched(model, last.loads))

    def _last_build(self, model: Model) -> ModelBuild | None:
        """Return the build to start from; None if the model's SQL has changed, or all are built anew."""
        last = self.last_builds.get(model.name)
        if self.full or last is None or last.fingerprint != fingerprint(model, self.model_of):
            return None
        return last

    def _has_all(self, model: Model, loads: Loads) -> bool:
        """Whether these loads are the newest of all lake tables that a model reads.

        It is False for a model that reads lake.curation, whose rows have no load numbers.
        """
        has_numbers = entities_of(model, self.model_of) <= LOADED.keys()
        return has_numbers and all(
            loads.get(entity) == newest for entity, newest in self.newest_loads(model).items()
        )

    def touched(self, model: Model, loads: Loads) -> list[Span]:
        """Return the dates of a model with by_date whose rows may have changed since these loads."""
        days = self._loaded_days(model, loads)
        if days and model.also_touched:
            days |= {row["dt"] for row in self.warehouse.rows(with_load_numbers(model.also_touched, loads))}
        return touched_periods(model, days)

    def _loaded_days(self, model: Model, since: Loads) -> set[date]:
        """Return the dates of the lake's rows that later loads brought or replaced, and the model reads."""
        later = " OR ".join(
            f"(entity = {literal(entity)} AND {LOAD_NUMBER} > {since.get(entity, 0)})"
            for entity in sorted(entities_of(model, self.model_of))
        )
        rows = self.warehouse.rows(f"SELECT DISTINCT dt FROM lake.loads WHERE {later}")  # noqa: S608
        return {row["dt"] for row in rows}

    def newest_loads(self, model: Model) -> dict[str, int]:
        """Return the number of the newest load of each lake table that a model reads."""
        return {entity: self.loads.get(entity, 0) for entity in sorted(entities_of(model, self.model_of))}

    def _record(self, model: Model) -> list[str]:
        """Return the SQL that notes a build."""
        last = self._last_build(model)
        tested = last.tested if last else None
        loads = map(write_loads, (self.newest_loads(model), tested))
        values = ", ".join(map(literal, (model.name, fingerprint(model, self.model_of), *loads)))
        return [
            f"DELETE FROM lake.builds WHERE model = {literal(model.name)}",  # noqa: S608
            f"INSERT INTO lake.builds (model, fingerprint, loads, tested) VALUES ({values})",  # noqa: S608
        ]

    def scope(self, model: Model) -> Scope | None:
        """Return the rows that have come since the model's tests last succeeded; None if there are none.

        Tests of these rows cannot find that a parent of another row was removed. The weekly tests of all rows
        do.
        """
        last = self._last_build(model)
        if last is None or last.tested is None:
            return ALL
        if model.tested_in or self._has_all(model, last.tested):
            return None
        if model.by_date:
            rows = spans_condition(_quote(model.by_date), self.touched(model, last.tested))
            # A key that has the date is unique if it is unique within the same dates.
            return Scope(rows, rows if model.by_date in model.key else "") if rows else None
        entities = entities_of(model, self.model_of)
        if LOAD_NUMBER not in model.columns or len(entities) != 1:
            return ALL  # no load number says which rows these are
        rows = f"{LOAD_NUMBER} > {last.tested.get(min(entities), 0)}"
        days = join_days(self._loaded_days(model, last.tested))
        if not model.placed_by or not days:
            return Scope(rows)
        near = spans_condition(_quote(model.placed_by), days)
        return Scope(f"{rows} AND ({near})", near)

    def note_tested(self, model: Model) -> None:
        """Note that the model's tests have succeeded for all of its rows."""
        before = self.last_builds[model.name]
        tested = self.newest_loads(model) if model.materialized == "view" else before.loads
        change = f"tested = {literal(write_loads(tested))} WHERE model = {literal(model.name)}"
        self.warehouse.run([f"UPDATE lake.builds SET {change}"])  # noqa: S608


def read_loads(text: str | None) -> dict[str, int] | None:
    """Read a text such as `daily_activity=12,ledger=9`; None stays None."""
    if text is None:
        return None
    pairs = (pair.partition("=") for pair in text.split(",") if pair)
    return {entity: int(number) for entity, _, number in pairs}


def write_loads(loads: Loads | None) -> str | None:
    """Return loads as the text that `read_loads` reads."""
    return None if loads is None else ",".join(f"{entity}={loads[entity]}" for entity in sorted(loads))


def _create(model: Model, kind: str | None) -> list[str]:
    """Return the SQL that makes a model anew. kind: of the relation that has its name now, if any."""
    drop = [f"DROP {'VIEW' if kind == 'VIEW' else 'TABLE'} {model.name} CASCADE"] if kind else []
    if model.materialized == "view":
        # Late binding, because the tables that the view reads are dropped and made anew if their SQL changes.
        return [*drop, f"CREATE VIEW {model.name} AS {model.sql} WITH NO SCHEMA BINDING"]
    new, name = f"{model.name}__new", model.name.partition(".")[2]
    dist = f"DISTSTYLE KEY DISTKEY ({model.dist}) " if model.dist else ""
    sort = f"COMPOUND SORTKEY ({', '.join(model.sort)}) " if model.sort else ""
    return [f"CREATE TABLE {new} {dist}{sort}AS {model.sql}", *drop, f"ALTER TABLE {new} RENAME TO {name}"]


def _increment(model: Model, newest: int, spans: Collection[Span]) -> list[str]:
    """Return the SQL that puts the rows of later loads in the place of rows with the same keys.

    newest: the number of the newest load that the model has. spans: the dates that later loads touched. Only
    these are searched, if the model has a column whose date places a row in the lake.
    """
    columns, is_later = _columns(model), f"{LOAD_NUMBER} > {newest}"
    sql = narrowed_sql(model, spans, is_later) if spans else model.sql
    near, near_in_model = "", ""
    if spans and model.placed_by:
        column = _quote(model.placed_by)
        near = f" AND ({spans_condition(column, spans)})"
        near_in_model = f" AND ({spans_condition(f'{model.name}.{column}', spans)})"
    fresh = f"SELECT {columns} FROM ({sql}) AS model WHERE {is_later}{near}"  # noqa: S608
    has_same_key = " AND ".join(f'{model.name}."{key}" = fresh."{key}"' for key in model.key)
    statements = [f"CREATE TEMP TABLE fresh AS {fresh}"]
    if version := model.newest_by:
        is_newer = f'{model.name}."{version}" > fresh."{version}"'
        statements.append(f"DELETE FROM fresh USING {model.name} WHERE {has_same_key} AND {is_newer}")  # noqa: S608
    return [
        *statements,
        f"DELETE FROM {model.name} USING fresh WHERE {has_same_key}{near_in_model}",  # noqa: S608
        f"INSERT INTO {model.name} ({columns}) SELECT {columns} FROM fresh",  # noqa: S608
    ]


def _rebuild_dates(model: Model, spans: Collection[Span]) -> list[str]:
    """Return the SQL that replaces the rows of some dates. It reads only the rows of these dates."""
    if not spans:
        return []
    where = f" WHERE {spans_condition(_quote(str(model.by_date)), spans)}"
    sql = narrowed_sql(model, source_spans(model, spans))
    return [f"DELETE FROM {model.name}{where}", _insert(model, where, sql)]  # noqa: S608


def _insert(model: Model, where: str, sql: str) -> str:
    """Return the SQL that adds a query's rows to a model. where: a condition of these rows; "": all."""
    columns = _columns(model)
    return f"INSERT INTO {model.name} ({columns}) SELECT {columns} FROM ({sql}) AS model{where}"  # noqa: S608


def _columns(model: Model) -> str:
    return ", ".join(map(_quote, model.columns))


def _quote(name: str) -> str:
    return f'"{name}"'


def narrowed_sql(model: Model, spans: Collection[Span], also: str = "") -> str:
    """Return the model's SQL, limited to these dates of the tables in reads_by.

    also: a further condition of these tables' rows.
    """
    sql = model.sql
    for table, column in model.reads_by.items():
        where = f"({spans_condition(column, spans)})" + (f" AND {also}" if also else "")
        sql = replace_table(sql, table, f"(SELECT * FROM {table} WHERE {where})")  # noqa: S608
    return sql


def replace_table(sql: str, table: str, rows: str) -> str:
    """Put a subquery in a table's place. It gets the table's alias, or the table's own name."""
    name = table.partition(".")[2]
    pattern = rf"\b(?P<word>FROM|JOIN)\s+{re.escape(table)}\b(?:\s+AS\s+(?P<alias>\w+))?"
    return re.sub(pattern, lambda match: f"{match['word']} {rows} AS {match['alias'] or name}", sql)


def spans_condition(column: str, spans: Iterable[Span]) -> str:
    """Return the condition that a date, or a timestamp, is in one of the spans."""
    return " OR ".join(
        f"({column} >= {literal(first)} AND {column} < {literal(last + DAY)})" for first, last in spans
    )


def with_load_numbers(query: str, loads: Mapping[str, int]) -> str:
    """Return a query with the newest load of an entity in the place of each `{entity}`."""
    return re.sub(r"\{(\w+)\}", lambda match: str(loads.get(match[1], 0)), query)


def touched_periods(model: Model, days: Iterable[date]) -> list[Span]:
    """Return the first dates of the model's periods that change if the lake's rows of these dates change.

    Example: with window 1 and the period day, a change of 2026-01-31 changes 2026-01-31 and 2026-02-01.
    """
    before, after = model.around, max(model.window, model.around)
    changed = {day + number * DAY for day in days for number in range(-before, after + 1)}
    return join_days(_start(day, period) for day in changed for period in model.periods)


def source_spans(model: Model, spans: Iterable[Span]) -> list[Span]:
    """Return the dates on which the model's periods depend that begin in these spans."""
    before, after = max(model.window, model.around), model.around
    return join_spans(
        (first - before * DAY, _end(last, period) + after * DAY)
        for first, last in spans
        for period in model.periods
        if first <= _start(last, period)
    )


def _start(day: date, period: str) -> date:
    """Return the first date of the day, week or month that a date is in."""
    if period == "month":
        return day.replace(day=1)
    return day - day.weekday() * DAY if period == "week" else day


def _end(day: date, period: str) -> date:
    """Return the last date of the day, week or month that a date is in."""
    first = _start(day, period)
    if period == "month":
        return (first + 31 * DAY).replace(day=1) - DAY
    return first + 6 * DAY if period == "week" else first


def join_spans(spans: Iterable[Span]) -> list[Span]:
    """Return the same dates as sorted spans that neither overlap nor touch.

    If these are more than SPANS_MAX, the narrowest gaps between them are filled. That is harmless: dates that
    no row has touched are built anew with the same rows.
    """
    merged: list[Span] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1] + DAY:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    if not merged:
        return []
    # A gap has the index of the span after it. The widest gaps stay.
    by_width = sorted(range(1, len(merged)), key=lambda index: merged[index][0] - merged[index - 1][1])
    widest = by_width[-(SPANS_MAX - 1) :]
    begins = [0, *sorted(widest), len(merged)]
    return [(merged[begin][0], merged[end - 1][1]) for begin, end in pairwise(begins)]


def join_days(days: Iterable[date]) -> list[Span]:
    """Return single dates as spans, as join_spans does."""
    return join_spans((day, day) for day in days)
