"""Rewrites the tree of a query of Redshift for another engine, from the leaves up.

Each node whose class has a builder becomes text of the engine's SQL. A call is written as functions.py, or
the engine's own list, has it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from analytics.warehouse.dialect.clauses import NOT_KNOWN
from analytics.warehouse.dialect.functions import FUNCTIONS
from analytics.warehouse.dialect.kinds import kind_of, set_kind
from analytics.warehouse.dialect.parser import NotAsRedshift, name_of
from analytics.warehouse.dialect.special import Call, Function

# An unnamed column of one of these classes has the name of the expression within.
_WRAPPERS = (exp.Window, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls, exp.Paren, exp.Cast)


@dataclass(frozen=True)
class Engine:
    """How an engine's SQL is written."""

    dialect: Any  # of sqlglot
    builders: Mapping[type[exp.Expr], Callable[[Any], str]]  # a builder returns a node as SQL
    sql: Callable[[Any], str]  # returns a node that was rewritten, in parentheses where it needs them
    call: Callable[[Function, Call], str]  # returns a call


def rewrite(node: exp.Expr, engine: Engine) -> None:
    """Rewrite a node and all below it, from the leaves up. Raises NotAsRedshift."""
    if isinstance(node, exp.Window):
        _rewrite_window(node, engine)
        return
    if isinstance(node, exp.WithinGroup):
        _rewrite_group(node, engine)
        return
    for child in list(node.iter_expressions()):
        rewrite(child, engine)
    if isinstance(node.parent, exp.Escape) and isinstance(node, exp.Like | exp.ILike | exp.SimilarTo):
        return  # the builder of Escape writes both
    if isinstance(node, exp.Anonymous):
        _replace(node, _translate_call(node, engine))
    elif build := engine.builders.get(type(node)):
        _replace(node, build(node))


def _replace(node: exp.Expr, text: str) -> None:
    """Put SQL in a node's place. It keeps the node's kind, which builders of outer nodes need."""
    replacement = exp.Var(this=text)
    set_kind(replacement, kind_of(node))
    node.replace(replacement)


def name_columns(tree: exp.Expr) -> None:
    """Give columns without a name the name that Redshift gives: the function's, the column's, or ?column?."""
    for select in tree.find_all(exp.Select):
        for expression in list(select.expressions):
            if not isinstance(expression, exp.Column | exp.Alias | exp.Star):
                alias = exp.Alias(alias=exp.to_identifier(_column_name(expression), quoted=True))
                expression.replace(alias)
                alias.set("this", expression)


def _column_name(node: exp.Expr) -> str:
    inner: Any = node
    while isinstance(inner, _WRAPPERS):
        inner = inner.this
    if isinstance(inner, exp.Column):
        return str(inner.name)
    if isinstance(inner, exp.Case | exp.Extract):
        return "case" if isinstance(inner, exp.Case) else "date_part"
    return name_of(inner).lower() if isinstance(inner, exp.Anonymous) else "?column?"


def _translate_call(
    call: exp.Anonymous, engine: Engine, over: str = "", nulls: str = "", order: exp.Order | None = None
) -> str:
    """Return a call as SQL. over, nulls, order: see Call."""
    name, nodes = name_of(call), call.expressions
    function = FUNCTIONS.get(name)
    if function is None:
        raise NotAsRedshift(f"{name}: {NOT_KNOWN}")
    if function.counts and len(nodes) not in function.counts:
        raise NotAsRedshift(f"{name}: it is not known with {len(nodes)} arguments")
    kinds = [kind_of(node.expressions[0] if isinstance(node, exp.Distinct) else node) for node in nodes]
    texts = [engine.sql(node) for node in nodes]
    return engine.call(function, Call(name, nodes, texts, kinds, over, nulls, order))


def _rewrite_window(window: exp.Window, engine: Engine) -> None:
    """Write a call with its OVER, its WITHIN GROUP and its IGNORE NULLS as one text."""
    call, nulls, order = _unwrapped(window)
    _rewrite_window_parts(window, call, order, engine)
    if not isinstance(call, exp.Anonymous):
        raise NotAsRedshift(f"{call.key.upper()} OVER: {NOT_KNOWN}")
    window.set("this", exp.Var(this=""))  # without its function, its SQL is the OVER alone
    over = window.sql(dialect=engine.dialect, comments=False, copy=False).strip()
    _replace(window, _translate_call(call, engine, f" {over}", nulls, order))


def _unwrapped(window: exp.Window) -> tuple[exp.Expr, str, exp.Order | None]:
    """Return the call within IGNORE NULLS and WITHIN GROUP, and what these said (see Call: nulls, order)."""
    call, nulls, order = window.this, "", None
    while isinstance(call, exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        if isinstance(call, exp.WithinGroup):
            order = call.expression
        elif isinstance(call, exp.IgnoreNulls):
            nulls = " IGNORE NULLS"
        call = call.this
    return call, nulls, order


def _rewrite_window_parts(
    window: exp.Window, call: exp.Expr, order: exp.Order | None, engine: Engine
) -> None:
    """Rewrite the arguments of a window's call, then its WITHIN GROUP, then what its OVER says."""
    for expression in [*call.iter_expressions(), *([order] if order else [])]:
        rewrite(expression, engine)
    for name, value in window.args.items():
        for expression in value if isinstance(value, list) else [value]:
            if name != "this" and isinstance(expression, exp.Expr):
                rewrite(expression, engine)


def _rewrite_group(group: exp.WithinGroup, engine: Engine) -> None:
    for expression in [*group.this.iter_expressions(), group.expression]:
        rewrite(expression, engine)
    if not isinstance(group.this, exp.Anonymous):
        raise NotAsRedshift(f"{group.this.key.upper()} WITHIN GROUP: {NOT_KNOWN}")
    _replace(group, _translate_call(group.this, engine, order=group.expression))
