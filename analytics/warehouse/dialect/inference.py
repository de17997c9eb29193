"""Notes at each expression of a statement which type it has on Redshift.

Example: in `SELECT a.n / 2 FROM (SELECT COUNT(*) AS n FROM t) AS a` the quotient is a BIGINT, as n is one.

A query is read as an engine reads it: WITH, FROM and JOIN bring columns; then come the selected expressions,
which may read these; then conditions and orders, which may read both. The type of an expression follows from
the types of its parts. What nobody can tell is UNKNOWN.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from analytics.warehouse.dialect import kinds
from analytics.warehouse.dialect.functions import FUNCTIONS
from analytics.warehouse.dialect.kinds import BOOLEAN, UNKNOWN, Kind
from analytics.warehouse.dialect.parser import name_of

Columns = Mapping[str, Kind]  # of a table, by name in small letters
Catalog = Callable[[str], Columns]  # by schema.name in small letters; of an unknown table it has none
_KIND = "kind"


def kind_of(node: Any) -> Kind:
    """Return the type that was noted for an expression, also after it was rewritten."""
    found = node.meta.get(_KIND, UNKNOWN)
    return found if isinstance(found, Kind) else UNKNOWN


def set_kind(node: exp.Expr, kind: Kind) -> None:
    """Note the type of an expression."""
    node.meta[_KIND] = kind


def infer_kinds(tree: exp.Expr, catalog: Catalog) -> None:
    """Note at each expression of a statement which type it has."""
    scope = _Scope(catalog)
    if isinstance(tree, exp.Query):
        _infer_query(tree, scope)
        return
    for each in tree.find_all(exp.Table):
        scope.sources.setdefault(each.alias_or_name.lower(), _table_columns(each, scope))
    _infer_parts(tree, scope)


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
            found = [each[name] for each in self.sources.values() if name in each]
            if found:
                return found[0]
            if name in self.aliases:
                return self.aliases[name]
        return self.outer.column(column) if self.outer else UNKNOWN


# Queries: each returns its columns, in order.


def _infer_query(query: exp.Expr, around: _Scope) -> dict[str, Kind]:
    scope = _Scope(around.catalog, dict(around.with_queries), outer=around.outer)
    for each in (query.args.get("with_") or exp.With(expressions=[])).expressions:
        scope.with_queries[each.alias.lower()] = _infer_with_query(each, scope)
    if isinstance(query, exp.Subquery):
        return _infer_query(query.this, scope)
    if isinstance(query, exp.SetOperation):
        return _infer_set_operation(query, scope)
    return _infer_select(query, scope) if isinstance(query, exp.Select) else {}


def _infer_with_query(part: exp.Expr, scope: _Scope) -> Columns:
    names = [each.name for each in part.args["alias"].args.get("columns") or ()]
    if isinstance(part.this, exp.SetOperation):  # it may read itself: then it has its first branch's columns
        begun = _infer_query(part.this.this.copy(), scope)
        scope.with_queries[part.alias.lower()] = _renamed(begun, names)
    return _renamed(_infer_query(part.this, scope), names)


def _renamed(columns: Columns, names: Collection[str]) -> Columns:
    """Return columns under the names of an alias such as `AS part (a, b)`, if it has any."""
    return dict(zip(map(str.lower, names), columns.values(), strict=False)) if names else columns


def _infer_set_operation(query: exp.SetOperation, scope: _Scope) -> dict[str, Kind]:
    one, other = _infer_query(query.this, scope), list(_infer_query(query.expression, scope).values())
    _infer_parts(query, scope, {"this", "expression", "with_"})
    return {name: kinds.common((kind, *other[at : at + 1])) for at, (name, kind) in enumerate(one.items())}


def _infer_select(query: exp.Select, scope: _Scope) -> dict[str, Kind]:
    joins = query.args.get("joins") or []
    for place in filter(None, [query.args.get("from_"), *joins]):
        scope.sources[place.this.alias_or_name.lower()] = _source_columns(place.this, scope)
    found: dict[str, Kind] = {}
    for at, each in enumerate(query.expressions):
        if each.is_star:
            found |= _star_columns(each, scope)
            continue
        name, kind = each.alias_or_name.lower(), _infer(each, scope)
        found[name or f"?{at}"] = scope.aliases[name] = kind
    for join in joins:
        _infer_parts(join, scope, {"this"})
    _infer_parts(query, scope, {"from_", "joins", "expressions", "with_"})
    return found


def _star_columns(star: exp.Expr, scope: _Scope) -> Columns:
    if isinstance(star, exp.Column):
        return scope.sources.get(star.table.lower(), {})
    return {name: kind for each in scope.sources.values() for name, kind in each.items()}


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
    for each in pivots:
        within = {**scope.sources, "": columns}
        _infer_parts(each, _Scope(scope.catalog, scope.with_queries, within, outer=scope.outer))
    return {} if pivots else columns


def _table_columns(table: exp.Table, scope: _Scope) -> Columns:
    if not table.db and table.name.lower() in scope.with_queries:
        return scope.with_queries[table.name.lower()]
    return scope.catalog(f"{table.db}.{table.name}".lower().lstrip("."))


# Expressions: each follows from its parts.


def _infer_parts(node: exp.Expr, scope: _Scope, without: Collection[str] = ()) -> None:
    """Note the types of all expressions below a node, apart from those in some of its arguments."""
    for name, value in node.args.items():
        for each in value if isinstance(value, list) else [value]:
            if name not in without and isinstance(each, exp.Expr):
                _infer(each, scope)


def _infer(node: exp.Expr, scope: _Scope) -> Kind:
    if isinstance(node, exp.Query):  # within an expression: its one column
        columns = _infer_query(node, _Scope(scope.catalog, scope.with_queries, outer=scope))
        kind = next(iter(columns.values()), UNKNOWN)
    else:
        _infer_parts(node, scope)
        kind = scope.column(node) if isinstance(node, exp.Column) else _kind_by_parts(node)
    set_kind(node, kind)
    return kind


def _kind_by_parts(node: exp.Expr) -> Kind:
    if type(node) in _FIXED:
        return _FIXED[type(node)]
    if type(node) in _BY_PARTS:
        return _BY_PARTS[type(node)](node)
    if isinstance(node, exp.Predicate | exp.Connector):
        return BOOLEAN
    within = node.args.get("this")  # of parentheses, an alias, a window, a negation
    return kind_of(within) if isinstance(within, exp.Expr) else UNKNOWN


def _kind_of_arithmetic(node: exp.Binary) -> Kind:
    return kinds.arithmetic(type(node), kind_of(node.this), kind_of(node.expression))


def _kind_of_case(node: exp.Case) -> Kind:
    chosen = [each.args["true"] for each in node.args["ifs"]]
    return kinds.common(map(kind_of, [*chosen, *filter(None, [node.args.get("default")])]))


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
    given = [each.expressions[0] if isinstance(each, exp.Distinct) else each for each in call.expressions]
    return function.kind([kind_of(each) for each in given])


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
