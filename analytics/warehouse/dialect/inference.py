"""Notes for each expression of a statement which type it has on Redshift."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from analytics.warehouse.dialect import kinds
from analytics.warehouse.dialect.functions import FUNCTIONS, OF_JSON_TEXTS
from analytics.warehouse.dialect.kinds import BOOLEAN, UNKNOWN, Kind
from analytics.warehouse.dialect.parser import name_of
from analytics.warehouse.dialect.special import SPECIAL

Columns = Mapping[str, Kind]  # of a table, by name in small letters
Catalog = Callable[[str], Columns]  # by schema.name in small letters; of an unknown table it has none
_KIND = "kind"
_OF_NODES: dict[type[exp.Expr], Kind] = {
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


def kind_of(node: Any) -> Kind:
    """Return the type that was noted for an expression, also after it was rewritten."""
    found = node.meta.get(_KIND, UNKNOWN)
    return found if isinstance(found, Kind) else UNKNOWN


def set_kind(node: exp.Expr, kind: Kind) -> None:
    """Note the type of an expression."""
    node.meta[_KIND] = kind


def infer_kinds(tree: exp.Expr, catalog: Catalog) -> None:
    """Note at each expression of a statement which type it has."""
    if isinstance(tree, exp.Query):
        _query(tree, _Names(catalog))
        return
    names = _Names(catalog)
    for each in tree.find_all(exp.Table):
        names.sources.setdefault(each.alias_or_name.lower(), _of_table(each, names))
    _infer_below(tree, names)


@dataclass
class _Names:
    """What names stand for at one place of a statement."""

    catalog: Catalog
    parts: dict[str, Columns] = field(default_factory=dict)  # of WITH
    sources: dict[str, Columns] = field(default_factory=dict)
    aliases: dict[str, Kind] = field(default_factory=dict)
    outer: "_Names | None" = None

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


def _query(query: exp.Expr, names: _Names) -> dict[str, Kind]:
    """Return the columns of a query in order, and note all types in it."""
    names = _Names(names.catalog, dict(names.parts), outer=names.outer)
    for part in (query.args.get("with_") or exp.With(expressions=[])).expressions:
        _part(part, names)
    if isinstance(query, exp.Subquery):
        return _query(query.this, names)
    if isinstance(query, exp.SetOperation):
        return _union(query, names)
    if isinstance(query, exp.Select):
        return _select(query, names)
    return {}


def _part(part: exp.Expr, names: _Names) -> None:
    renamed = [each.name.lower() for each in part.args["alias"].args.get("columns") or ()]
    query = part.this
    if isinstance(query, exp.SetOperation):  # it may read itself, beginning with its first branch
        begun = _query(query.this.copy(), names)
        names.parts[part.alias.lower()] = dict(zip(renamed or begun, begun.values(), strict=False))
    found = _query(query, names)
    names.parts[part.alias.lower()] = dict(zip(renamed or found, found.values(), strict=False))


def _union(query: exp.Expr, names: _Names) -> dict[str, Kind]:
    one, other = _query(query.this, names), _query(query.expression, names)
    _infer_below(query, names, {"this", "expression", "with_"})
    others = list(other.values())
    return {
        name: kinds.common((kind, others[at])) if at < len(others) else kind
        for at, (name, kind) in enumerate(one.items())
    }


def _select(query: exp.Expr, names: _Names) -> dict[str, Kind]:
    places = [query.args.get("from_"), *(query.args.get("joins") or ())]
    for place in places:
        if place is not None:
            source = place.this
            names.sources[source.alias_or_name.lower()] = _source(source, names)
    found: dict[str, Kind] = {}
    for at, each in enumerate(query.expressions):
        if each.is_star:
            found |= _stars(each, names)
            continue
        kind = _kind(each, names)
        found[each.alias_or_name.lower() or f"?{at}"] = kind
        names.aliases[each.alias_or_name.lower()] = kind
    for place in places:
        if isinstance(place, exp.Join):
            _infer_below(place, names, {"this"})
    _infer_below(query, names, {"from_", "joins", "expressions", "with_"})
    return found


def _stars(star: exp.Expr, names: _Names) -> Columns:
    if isinstance(star, exp.Column):
        return names.sources.get(star.table.lower(), {})
    return {name: kind for each in names.sources.values() for name, kind in each.items()}


def _source(source: exp.Expr, names: _Names) -> Columns:
    for pivot in source.args.get("pivots") or ():
        inner = {**names.sources, "": _of_table(source, names) if isinstance(source, exp.Table) else {}}
        _infer_below(pivot, _Names(names.catalog, names.parts, inner, {}, names.outer))
    if isinstance(source, exp.Table):
        return {} if source.args.get("pivots") else _of_table(source, names)
    if isinstance(source, exp.Subquery):
        found = _query(source, names)
        renamed = [str(each).lower() for each in source.alias_column_names]
        return {} if source.args.get("pivots") else dict(zip(renamed or found, found.values(), strict=False))
    _infer_below(source, names)
    return {}


def _of_table(table: exp.Table, names: _Names) -> Columns:
    if not table.db and table.name.lower() in names.parts:
        return names.parts[table.name.lower()]
    return names.catalog(f"{table.db}.{table.name}".lower().lstrip("."))


def _infer_below(node: exp.Expr, names: _Names, without: Sequence[str] | set[str] = ()) -> None:
    """Note the types of all expressions below a node, apart from those under some of its names."""
    for name, value in node.args.items():
        if name in without:
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, exp.Expr):
                _kind(each, names)


def _kind(node: exp.Expr, names: _Names) -> Kind:
    if isinstance(node, exp.Query):
        inner = _query(node, _Names(names.catalog, names.parts, outer=names))
        kind = next(iter(inner.values()), UNKNOWN)
    else:
        _infer_below(node, names)
        kind = _of(node, names)
    set_kind(node, kind)
    return kind


def _of(node: exp.Expr, names: _Names) -> Kind:  # noqa: C901, PLR0911 (a kind of node each)
    if type(node) in _OF_NODES:
        return _OF_NODES[type(node)]
    if isinstance(node, exp.Column):
        return names.column(node)
    if isinstance(node, exp.Literal):
        return kinds.of_literal(node)
    if isinstance(node, exp.Cast):
        return kinds.of_type(node.to)
    if isinstance(node, exp.Predicate | exp.Connector):
        return BOOLEAN
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod):
        return kinds.arithmetic(type(node), kind_of(node.this), kind_of(node.expression))
    if isinstance(node, exp.Case):
        chosen = [each.args["true"] for each in node.args["ifs"]]
        return kinds.common(map(kind_of, [*chosen, *filter(None, [node.args.get("default")])]))
    if isinstance(node, exp.DecodeCase):
        values = node.expressions
        chosen = values[2::2] + ([values[-1]] if len(values) % 2 == 0 else [])
        return kinds.common(map(kind_of, chosen))
    if isinstance(node, exp.Anonymous):
        return _of_call(node)
    if isinstance(node, exp.AtTimeZone):
        return kinds.TIMESTAMP if kind_of(node.this) == kinds.TIMESTAMPTZ else kinds.TIMESTAMPTZ
    if isinstance(node.args.get("this"), exp.Expr):  # in parentheses, with a name, of a window, negated
        if isinstance(node, exp.WithinGroup) and name_of(node.this).startswith(("PERCENTILE", "MEDIAN")):
            return kinds.FLOAT
        return kind_of(node.this)
    return UNKNOWN


def _of_call(call: exp.Anonymous) -> Kind:
    name = name_of(call)
    of: Any = UNKNOWN
    if name in FUNCTIONS:
        of = FUNCTIONS[name].kind
    elif name in OF_JSON_TEXTS:
        of = OF_JSON_TEXTS[name][0]
    elif name in SPECIAL:
        of = SPECIAL[name].kind
    if isinstance(of, Kind):
        return of
    given = [
        kind_of(each.expressions[0] if isinstance(each, exp.Distinct) and each.expressions else each)
        for each in call.expressions
    ]
    kind = of(given)
    return kind if isinstance(kind, Kind) else UNKNOWN
