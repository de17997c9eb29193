"""Notes at each expression of a statement which type it has on Redshift.

Example: in `SELECT a.n / 2 FROM (SELECT COUNT(*) AS n FROM t) AS a` the quotient is a BIGINT, as n is one.

A query is read as an engine reads it: WITH, FROM and JOIN bring columns; then come the selected expressions,
which may read these; then conditions and orders, which may read both. The type of an expression follows from
the types of its parts. What nobody can tell is UNKNOWN.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from analytics.warehouse.dialect import kinds
from analytics.warehouse.dialect.functions import FUNCTIONS
from analytics.warehouse.dialect.kinds import BOOLEAN, NOTHING, SUPER, TEXT, UNKNOWN, Kind, kind_of, set_kind
from analytics.warehouse.dialect.parser import NotAsRedshift, name_of

Columns = Mapping[str, Kind]  # of a table, by name in small letters
Catalog = Callable[[str], Columns]  # by schema.name in small letters; of an unknown table it has none


def infer_kinds(tree: exp.Expr, catalog: Catalog) -> None:
    """Note at each expression of a statement which type it has.

    Raises NotAsRedshift for types that Redshift does not mix, and for names that it does not know in a place.
    """
    scope = _Scope(catalog)
    if isinstance(tree, exp.Query):
        _infer_query(tree, scope)
    else:
        for table in tree.find_all(exp.Table):
            scope.sources.setdefault(table.alias_or_name.lower(), _table_columns(table, scope))
        _infer_parts(tree, scope)
    _refuse_conditions(tree)


@dataclass
class _Scope:
    """What names stand for at one place of a statement."""

    catalog: Catalog
    with_queries: dict[str, Columns] = field(default_factory=dict)  # by name
    sources: dict[str, Columns] = field(default_factory=dict)  # of FROM and JOIN, by alias
    aliases: dict[str, Kind] = field(default_factory=dict)  # of selected expressions
    outer: "_Scope | None" = None  # of the query around

    def column(self, column: exp.Column) -> Kind:
        """Return a column's type."""
        name, table = column.name.lower(), column.table.lower()
        if table in self.sources:
            return self.sources[table].get(name, UNKNOWN)
        if not table:
            for source in self.sources.values():
                if name in source:
                    return source[name]
            if name in self.aliases:
                return self.aliases[name]
        return self.outer.column(column) if self.outer else UNKNOWN


def _infer_query(query: exp.Expr, around: _Scope) -> dict[str, Kind]:
    """Note the types within a query; returns its columns, in order."""
    scope = _Scope(around.catalog, dict(around.with_queries), outer=around.outer)
    for expression in (query.args.get("with_") or exp.With(expressions=[])).expressions:
        scope.with_queries[expression.alias.lower()] = _infer_with_query(expression, scope)
    if isinstance(query, exp.Subquery):
        return _infer_query(query.this, scope)
    if isinstance(query, exp.SetOperation):
        return _infer_set_operation(query, scope)
    return _infer_select(query, scope) if isinstance(query, exp.Select) else {}


def _infer_with_query(part: exp.Expr, scope: _Scope) -> Columns:
    """Note the types within a part of WITH; returns its columns."""
    names = [column.name for column in part.args["alias"].args.get("columns") or ()]
    if isinstance(part.this, exp.SetOperation):  # it may read itself: then it has its first branch's columns
        first_branch = _infer_query(part.this.this, scope)
        scope.with_queries[part.alias.lower()] = _renamed(first_branch, names)
    return _renamed(_infer_query(part.this, scope), names)


def _renamed(columns: Columns, names: Collection[str]) -> Columns:
    """Return columns under the names of an alias such as `AS part (a, b)`, if it has any."""
    return dict(zip(map(str.lower, names), columns.values(), strict=False)) if names else columns


def _infer_set_operation(query: exp.SetOperation, scope: _Scope) -> dict[str, Kind]:
    """Note the types within a UNION or its like; returns its columns: names of the left, types of both."""
    left, right = _infer_query(query.this, scope), list(_infer_query(query.expression, scope).values())
    _infer_parts(query, scope, {"this", "expression", "with_"})
    sides = query.this.selects, query.expression.selects
    if not any(expression.is_star for side in sides for expression in side):
        for both in zip(*sides, strict=False):
            _refuse_mixed(both, query.key.upper())
    columns = {}
    for index, (name, kind) in enumerate(left.items()):
        columns[name] = kinds.common((kind, right[index])) if index < len(right) else kind
    return columns


def _infer_select(query: exp.Select, scope: _Scope) -> dict[str, Kind]:
    """Note the types within a SELECT; returns its columns. A clause may read what those before it brought."""
    joins = query.args.get("joins") or []
    for clause in filter(None, [query.args.get("from_"), *joins]):
        scope.sources[clause.this.alias_or_name.lower()] = _source_columns(clause.this, scope)
    columns: dict[str, Kind] = {}
    for index, expression in enumerate(query.expressions):
        if expression.is_star:
            columns |= _star_columns(expression, scope)
            continue
        name, kind = expression.alias_or_name.lower(), _infer(expression, scope)
        scope.aliases[name] = kind
        # Two expressions may have one name: then the second has none, but its place.
        columns[f"?{index}" if not name or name in columns else name] = kind
    for join in joins:
        _infer_parts(join, scope, {"this"})
    _infer_parts(query, scope, {"from_", "joins", "expressions", "with_"})
    for clause in filter(None, map(query.args.get, ("where", "having"))):
        _refuse_aliases(clause, scope)
    return columns


def _refuse_aliases(clause: exp.Expr, scope: _Scope) -> None:
    """Refuse a condition that reads a selected expression by its name: on Redshift it reads columns alone."""
    if not all(scope.sources.values()):
        return  # a source whose columns nobody can tell
    known = {name for source in scope.sources.values() for name in source}
    for node in clause.walk(prune=lambda node: isinstance(node, exp.Query)):
        if isinstance(node, exp.Column) and not node.table and node.name in scope.aliases.keys() - known:
            raise NotAsRedshift(f"{node.name}: {clause.key.upper()} of Redshift reads no name of SELECT")


def _star_columns(star: exp.Expr, scope: _Scope) -> Columns:
    """Return the columns that `*` or `table.*` stands for."""
    if isinstance(star, exp.Column):
        return scope.sources.get(star.table.lower(), {})
    return {name: kind for source in scope.sources.values() for name, kind in source.items()}


def _source_columns(source: exp.Expr, scope: _Scope) -> Columns:
    """Return the columns of what FROM or JOIN names. Those of a PIVOT nobody can tell."""
    columns: Columns = {}
    if isinstance(source, exp.Table):
        columns = _table_columns(source, scope)
    elif isinstance(source, exp.Subquery):
        columns = _renamed(_infer_query(source, scope), source.alias_column_names)
    else:
        _infer_parts(source, scope)
    pivots = source.args.get("pivots") or ()
    for pivot in pivots:
        within = {**scope.sources, "": columns}
        _infer_parts(pivot, _Scope(scope.catalog, scope.with_queries, within, outer=scope.outer))
    return {} if pivots else columns


def _table_columns(table: exp.Table, scope: _Scope) -> Columns:
    """Return the columns of a table, or of the part of WITH that has its name."""
    if not table.db and table.name.lower() in scope.with_queries:
        return scope.with_queries[table.name.lower()]
    return scope.catalog(f"{table.db}.{table.name}".lower().lstrip("."))


def _infer_parts(node: exp.Expr, scope: _Scope, without: Collection[str] = ()) -> None:
    """Note the types of all expressions below a node, apart from those in some of its arguments."""
    for name, value in node.args.items():
        for part in value if isinstance(value, list) else [value]:
            if name not in without and isinstance(part, exp.Expr):
                _infer(part, scope)


def _infer(node: exp.Expr, scope: _Scope) -> Kind:
    """Note the types of an expression and of all below it; returns that of the expression."""
    if isinstance(node, exp.Query):  # within an expression: its one column
        columns = _infer_query(node, _Scope(scope.catalog, scope.with_queries, outer=scope))
        kind = next(iter(columns.values()), UNKNOWN)
    else:
        _infer_parts(node, scope)
        kind = scope.column(node) if isinstance(node, exp.Column) else _kind_by_parts(node)
    set_kind(node, kind)
    return kind


def _kind_by_parts(node: exp.Expr) -> Kind:
    """Return the type of an expression whose parts have their types."""
    if type(node) in _FIXED:
        return _FIXED[type(node)]
    if type(node) in _BY_PARTS:
        return _BY_PARTS[type(node)](node)
    if isinstance(node, exp.Predicate | exp.Connector):
        return BOOLEAN
    within = node.args.get("this")  # of parentheses, an alias, a window, a negation
    return kind_of(within) if isinstance(within, exp.Expr) else UNKNOWN


def _refuse_mixed(expressions: Iterable[exp.Expr], where: str) -> None:
    """Refuse texts beside other values, which DuckDB makes texts. A text in quotes takes their kind."""
    values = [(expression.unalias().unnest(), kind_of(expression)) for expression in expressions]
    texts = [value for value, kind in values if kind == TEXT and not isinstance(value, exp.Literal)]
    others = [value for value, kind in values if kind not in (TEXT, NOTHING, UNKNOWN, SUPER)]
    if texts and others:
        raise NotAsRedshift(
            f"{where}: {texts[0].sql()} is a text, and {others[0].sql()} is {kind_of(others[0]).name}: CAST"
        )


def _refuse_conditions(tree: exp.Expr) -> None:
    """Refuse conditions that are no booleans, which DuckDB makes some."""
    for node in tree.walk():
        for condition in map(node.args.get, _CONDITIONS.get(type(node), ())):
            if isinstance(node, exp.If) and isinstance(node.parent, exp.Case) and node.parent.this:
                continue  # CASE a WHEN 1: a value
            if condition is None or (
                isinstance(condition.unnest(), exp.Literal) and kind_of(condition) == TEXT
            ):
                continue
            if (kind := kind_of(condition)) not in (BOOLEAN, NOTHING, UNKNOWN, SUPER):
                raise NotAsRedshift(f"{condition.sql()}: a condition is a boolean, and no {kind.name}")


_CONDITIONS: Mapping[type[exp.Expr], tuple[str, ...]] = {
    **dict.fromkeys((exp.Where, exp.Having, exp.Qualify, exp.Not, exp.If), ("this",)),
    **dict.fromkeys((exp.And, exp.Or), ("this", "expression")),
    exp.Join: ("on",),
}


def _kind_of_arithmetic(node: exp.Binary) -> Kind:
    return kinds.arithmetic(type(node), kind_of(node.this), kind_of(node.expression))


def _kind_of_case(node: exp.Case) -> Kind:
    results = [branch.args["true"] for branch in node.args["ifs"]]
    results += filter(None, [node.args.get("default")])
    _refuse_mixed(results, "CASE")
    return kinds.common(map(kind_of, results))


def _kind_of_decode(node: exp.DecodeCase) -> Kind:
    _, *rest = node.expressions  # value, result, value, result ..., and perhaps the result of all others
    return kinds.common(map(kind_of, rest[1::2] + rest[len(rest) - len(rest) % 2 :]))


def _kind_at_zone(node: exp.AtTimeZone) -> Kind:
    return kinds.TIMESTAMP if kind_of(node.this) == kinds.TIMESTAMPTZ else kinds.TIMESTAMPTZ


def _kind_of_call(call: exp.Anonymous) -> Kind:
    function = FUNCTIONS.get(name_of(call))
    if function is None:
        return UNKNOWN
    if isinstance(function.kind, Kind):
        return function.kind
    arguments = [
        expression.expressions[0] if isinstance(expression, exp.Distinct) else expression
        for expression in call.expressions
    ]
    if function.kind is kinds.common:
        _refuse_mixed(arguments, name_of(call))
    return function.kind(list(map(kind_of, arguments)))


_FIXED: dict[type[exp.Expr], Kind] = {
    exp.CurrentDate: kinds.DATE,
    exp.CurrentTimestamp: kinds.TIMESTAMP,
    exp.Extract: kinds.INT4,
    exp.StrPosition: kinds.INT4,
    exp.ApproxDistinct: kinds.INT8,
    exp.Interval: kinds.INTERVAL,
    exp.Null: kinds.NOTHING,
    exp.Pow: kinds.FLOAT,
    exp.Sqrt: kinds.FLOAT,
    exp.Cbrt: kinds.FLOAT,
    **dict.fromkeys((exp.Concat, exp.DPipe, exp.Substring, exp.Trim), kinds.TEXT),
    **dict.fromkeys((exp.Boolean, exp.Exists, exp.In, exp.Between, exp.Is, exp.Not), BOOLEAN),
}
_BY_PARTS: dict[type[exp.Expr], Callable[[Any], Kind]] = {
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod), _kind_of_arithmetic),
    exp.Anonymous: _kind_of_call,
    exp.AtTimeZone: _kind_at_zone,
    exp.Case: _kind_of_case,
    exp.Cast: lambda node: kinds.of_type(node.to),
    exp.DecodeCase: _kind_of_decode,
    exp.Literal: kinds.of_literal,
}
