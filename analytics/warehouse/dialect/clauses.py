"""The syntax that is translated: nodes of sqlglot, and the parts of each. Any other is refused by name.

sqlglot reads the clauses of some thirty dialects, whatever dialect it is told. So a clause that Redshift
lacks would reach the engine here, which might answer it, or be left out of the text in silence.
Source: https://docs.aws.amazon.com/redshift/latest/dg/r_SELECT_synopsis.html.
"""

import re
from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from analytics.warehouse.dialect.formats import date_part
from analytics.warehouse.dialect.parser import NotAsRedshift, name_of

# https://docs.aws.amazon.com/redshift/latest/dg/r_pg_keywords.html
RESERVED = frozenset(
    """aes128 aes256 all allowoverwrite analyse analyze and any array as asc authorization az64 backup between
    binary blanksasnull both bytedict bzip2 case cast check collate column constraint create credentials
    cross current_date current_time current_timestamp current_user current_user_id default deferrable
    deflate defrag delta delta32k desc disable distinct do else emptyasnull enable encode encrypt encryption
    end except explicit false for foreign freeze from full globaldict256 globaldict64k grant group gzip
    having identity ignore ilike in initially inner intersect interval into is isnull join leading left like
    limit localtime localtimestamp lun luns lzo lzop minus mostly16 mostly32 mostly8 natural new not notnull
    null nulls off offline offset oid old on only open or order outer overlaps parallel partition percent
    permissions pivot placing primary raw readratio recover references rejectlog resort respect restore
    right select session_user similar snapshot some sysdate system table tag tdes text255 text32k then
    timestamp to top trailing true truncatecolumns union unique unnest unpivot user using verbose wallet
    when where with without""".split()  # noqa: SIM905 (as quoted words they say no more)
)
_TWO_SIDES, _ONE = "this expression", "this"
_OF_ANY_QUERY = "with_ order limit offset"
# The parts that a node may have, for each class of node.
_PARTS: Mapping[type[exp.Expr], str] = {
    # queries
    exp.Select: f"{_OF_ANY_QUERY} distinct expressions from_ joins where group having qualify",
    **dict.fromkeys((exp.Union, exp.Except, exp.Intersect), f"{_OF_ANY_QUERY} this expression distinct"),
    exp.Subquery: f"{_OF_ANY_QUERY} this alias pivots",
    exp.With: "expressions recursive",
    exp.CTE: "this alias",
    exp.From: _ONE,
    exp.Table: "this db alias pivots",
    exp.TableAlias: "this columns",
    exp.Join: "this on using side kind method",
    exp.Pivot: "alias expressions fields unpivot columns include_nulls pivot_column_naming",
    exp.PivotAlias: "this alias",
    **dict.fromkeys((exp.Where, exp.Having, exp.Qualify), _ONE),
    exp.Group: "expressions all cube rollup grouping_sets",
    **dict.fromkeys((exp.Cube, exp.Rollup, exp.GroupingSets), "expressions"),
    exp.Order: "expressions",
    exp.Ordered: "this desc nulls_first",
    exp.Limit: "expression",
    exp.Offset: "expression",
    exp.Distinct: "expressions",
    exp.Star: "except_",
    exp.Alias: "this alias",
    # values
    exp.Column: "this table db",
    exp.Identifier: "this quoted",
    exp.Literal: "this is_string",
    exp.Interval: "this unit",
    **dict.fromkeys((exp.Boolean, exp.CurrentDate, exp.Null, exp.Paren, exp.Var), _ONE),
    exp.CurrentTimestamp: "sysdate",
    exp.Tuple: "expressions",
    exp.DataType: "this expressions",
    exp.DataTypeParam: _ONE,
    # operators and conditions
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Pow), _TWO_SIDES),
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor), _TWO_SIDES),
    **dict.fromkeys((exp.BitwiseLeftShift, exp.BitwiseRightShift), _TWO_SIDES),
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE), _TWO_SIDES),
    **dict.fromkeys((exp.And, exp.Or, exp.Is, exp.Escape, exp.SimilarTo), _TWO_SIDES),
    **dict.fromkeys((exp.RegexpLike, exp.RegexpILike), _TWO_SIDES),
    exp.Div: "this expression typed",
    exp.DPipe: "this expression safe",
    **dict.fromkeys((exp.Like, exp.ILike), "this expression negate"),
    **dict.fromkeys(
        (exp.Neg, exp.Not, exp.Sqrt, exp.Cbrt, exp.BitwiseNot, exp.Exists, exp.All, exp.Any), _ONE
    ),
    exp.Between: "this low high",
    exp.In: "this expressions query",
    exp.Case: "this ifs default",
    exp.If: "this true",
    # calls
    exp.Anonymous: "this expressions",
    exp.ApproxDistinct: _ONE,
    exp.AtTimeZone: "this zone",
    exp.Cast: "this to",
    exp.DecodeCase: "expressions",
    exp.Extract: _TWO_SIDES,
    exp.StrPosition: "this substr",
    exp.Substring: "this start length",
    exp.Trim: "this expression position",
    exp.Window: "this partition_by order spec over",
    exp.WindowSpec: "kind start start_side end end_side",
    exp.WithinGroup: _TWO_SIDES,
    **dict.fromkeys((exp.IgnoreNulls, exp.RespectNulls), _ONE),
}
# Parts that are words: which of them are taken.
_WORDS: Mapping[tuple[type[exp.Expr], str], frozenset[str]] = {
    (exp.Join, "kind"): frozenset({"INNER", "OUTER", "CROSS"}),
    (exp.Join, "side"): frozenset({"LEFT", "RIGHT", "FULL"}),
    (exp.Join, "method"): frozenset({"NATURAL"}),
    (exp.WindowSpec, "kind"): frozenset({"ROWS"}),
}
# What to write in place of a node.
_INSTEAD: Mapping[type[exp.Expr], str] = {
    exp.Concat: "two texts side by side: write || between them",
    exp.Bracket: "a path into a SUPER value: JSON_EXTRACT_PATH_TEXT reads a text of JSON",
    exp.Dot: "a path into a SUPER value, or a function of a schema",
    exp.Filter: "FILTER: Redshift has none; AGGREGATE(CASE WHEN ... THEN ... END)",
    exp.If: "IF: Redshift has none; CASE WHEN ... THEN ... ELSE ... END",
    exp.Lateral: "LATERAL: Redshift has none",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM: Redshift has none",
    exp.NullSafeNEQ: "IS DISTINCT FROM: Redshift has none",
    exp.TableSample: "TABLESAMPLE: Redshift has none",
    exp.TryCast: "TRY_CAST: CASE WHEN ... ~ '^[0-9]+$' THEN CAST(...) END",
    exp.Values: "VALUES in a query: Redshift has none; SELECT ... UNION ALL SELECT ...",
}
_PARTS_INSTEAD: Mapping[tuple[type[exp.Expr], str], str] = {
    (exp.Column, "join_mark"): "(+): write LEFT JOIN",
    (exp.Distinct, "on"): "DISTINCT ON: Redshift has none; QUALIFY ROW_NUMBER() OVER (...) = 1",
    (exp.Limit, "limit_options"): "LIMIT with PERCENT or TIES: Redshift has none",
    (
        exp.Order,
        "this",
    ): "ORDER BY within a call: Redshift has none; LISTAGG takes WITHIN GROUP (ORDER BY ...)",
    (exp.Select, "sample"): "SAMPLE: Redshift has none",
    (exp.Table, "sample"): "TABLESAMPLE: Redshift has none",
}
# What the OVER of a window function may have: https://docs.aws.amazon.com/redshift/latest/dg/c_Window_functions.html
_OF_A_SPREAD = ("STDDEV", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP")
_AGGREGATES = frozenset({"AVG", "COUNT", "MAX", "MIN", "SUM", *_OF_A_SPREAD})
_VALUES = frozenset({"FIRST_VALUE", "LAST_VALUE", "NTH_VALUE"})
_RANKINGS = frozenset({"CUME_DIST", "DENSE_RANK", "NTILE", "PERCENT_RANK", "RANK", "ROW_NUMBER"})
_NEIGHBOURS = frozenset({"LAG", "LEAD"})
_PARTITION_ONLY = frozenset({"LISTAGG", "MEDIAN", "PERCENTILE_CONT", "RATIO_TO_REPORT"})
_WINDOW_ONLY = _VALUES | _RANKINGS | _NEIGHBOURS | {"RATIO_TO_REPORT"}
_WITHIN_GROUP = frozenset({"LISTAGG", "PERCENTILE_CONT"})
_DISTINCT = _AGGREGATES | {"ANY_VALUE", "BIT_AND", "BIT_OR", "BOOL_AND", "BOOL_OR", "LISTAGG"}
NOT_KNOWN = "it is not known to answer here as Redshift does"
_NAME = re.compile(r"[^\W\d][\w$]*")  # DuckDB would take other names of tables for files
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)


def check_clauses(node: exp.Expr, *, is_query: bool = False) -> None:
    """Raise NotAsRedshift for any clause or expression of a statement that is on no list.

    is_query: whether the node is within a query. Of what is no query only expressions are checked: these
    statements are ours, and tests run them on all engines.
    """
    is_query = is_query or isinstance(node, exp.Query)
    if is_query or type(node) in _PARTS or isinstance(node, exp.Condition | exp.Func):
        _check(node)
    for child in node.iter_expressions():
        check_clauses(child, is_query=is_query)


def _check(node: exp.Expr) -> None:
    node_class: Any = type(node)
    parts = _PARTS.get(node_class)
    if parts is None or (node_class is exp.If and not isinstance(node.parent, exp.Case)):
        raise NotAsRedshift(_INSTEAD.get(node_class, f"{_name(node)}: {NOT_KNOWN}"))
    allowed = parts.split()
    for part, value in node.args.items():
        if value in (None, False, "", []):
            continue
        words = _WORDS.get((node_class, part))
        if value not in words if words else part not in allowed:
            written = str(value).upper() if words else part.rstrip("_").upper().replace("_", " ")
            reason = f"{written} of {_name(node)}: {NOT_KNOWN}"
            raise NotAsRedshift(_PARTS_INSTEAD.get((node_class, part), reason))
    if check := _CHECKS.get(node_class):
        check(node)


def _name(node: exp.Expr) -> str:
    """Return what people call a node."""
    names = {"windowspec": "a window's frame", "star": "*", "tablealias": "an alias"}
    return names.get(node.key, node.key.upper())


def _check_identifier(identifier: exp.Identifier) -> None:
    if not identifier.args.get("quoted") and identifier.name.lower() in RESERVED:
        raise NotAsRedshift(f"{identifier.name}: Redshift reserves this word; as a name it stands in quotes")


def _check_table(table: exp.Table) -> None:
    if isinstance(table.this, exp.Identifier) and not _NAME.fullmatch(table.name):
        raise NotAsRedshift(f"{table.name}: this is no table's name")


def _check_join(join: exp.Join) -> None:
    """Refuse a FULL JOIN on anything but equal values: Redshift supports only what it can merge or hash."""
    if join.side != "FULL" or not (condition := join.args.get("on")):
        return
    for part in condition.flatten() if isinstance(condition, exp.And) else [condition]:
        equal = part.unnest()
        if not isinstance(equal, exp.EQ) or not all(
            side.find(exp.Column) for side in equal.iter_expressions()
        ):
            raise NotAsRedshift("FULL JOIN: Redshift takes only conditions a.x = b.y, with AND between them")


def _check_subquery(query: exp.Subquery) -> None:
    if isinstance(query.parent, exp.From | exp.Join) and not query.alias:
        raise NotAsRedshift("a query in FROM has a name: FROM (SELECT ...) AS a")


def _check_select(select: exp.Select) -> None:
    """Refuse SELECT DISTINCT in an order that its answer does not show."""
    if not select.args.get("distinct") or not select.args.get("order") or select.is_star:
        return
    shown = {each.alias_or_name for each in select.expressions} - {""}
    expressions = [each.unalias() for each in select.expressions]
    for each in select.args["order"].expressions:
        by = each.this
        is_name = isinstance(by, exp.Column) and by.name in shown
        if not (is_name or isinstance(by, exp.Literal) or by in expressions):
            raise NotAsRedshift(f"ORDER BY {by.sql()}: SELECT DISTINCT is ordered by what it selects")


def _check_branches(query: exp.SetOperation) -> None:
    for branch in (query.this, query.expression):
        if isinstance(branch, exp.Select) and any(map(branch.args.get, ("order", "limit", "offset"))):
            raise NotAsRedshift(f"{query.key.upper()}: a query with ORDER BY or LIMIT stands in parentheses")


def _check_set_operation(query: exp.SetOperation) -> None:
    _check_branches(query)
    if not query.args.get("distinct"):
        raise NotAsRedshift(f"{query.key.upper()} ALL: Redshift has only {query.key.upper()}")


def _check_star(star: exp.Star) -> None:
    select = star.find_ancestor(exp.Select)
    last = select.expressions[-1] if select is not None else star
    if star.args.get("except_") and star is not (last.this if isinstance(last, exp.Column) else last):
        raise NotAsRedshift("EXCLUDE: its names stand in parentheses, at the end of the list")
    if not isinstance(star.parent, exp.Select | exp.Column | exp.Anonymous):
        raise NotAsRedshift(f"* in {_name(star.parent or star)}: {NOT_KNOWN}")


def _check_group(group: exp.Group) -> None:
    if group.args.get("all") is False:
        raise NotAsRedshift(f"GROUP BY DISTINCT: {NOT_KNOWN}")


def _check_like(node: Any) -> None:
    if isinstance(node.expression, exp.Any | exp.All | exp.Tuple):
        raise NotAsRedshift(f"{node.key.upper()} {node.expression.key.upper()}: write one for each, with OR")


def _check_comparison(node: Any) -> None:
    """Refuse a text with blanks at its end: Redshift disregards them when it compares, DuckDB does not."""
    sides = [*node.expressions, node.this] if isinstance(node, exp.In) else [node.this, node.expression]
    if any(isinstance(side, exp.Literal) and side.is_string and side.name.endswith(" ") for side in sides):
        raise NotAsRedshift(
            "a text with blanks at its end is compared: Redshift disregards them, DuckDB does not"
        )


def _check_interval(interval: exp.Interval) -> None:
    if interval.args.get("unit") is not None:
        date_part(interval.args["unit"].name)


def _check_nulls(node: Any) -> None:
    if not isinstance(node.parent, exp.Window | exp.WithinGroup):
        raise NotAsRedshift("IGNORE NULLS: it belongs to a window function, with its OVER")


def _check_call(call: exp.Anonymous) -> None:
    """Check what stands around a call's arguments: DISTINCT, IGNORE NULLS, WITHIN GROUP, OVER."""
    name, outer = name_of(call), call.parent
    while isinstance(outer, exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        taking = _WITHIN_GROUP if isinstance(outer, exp.WithinGroup) else _VALUES | _NEIGHBOURS
        if name not in taking:
            what = "WITHIN GROUP" if isinstance(outer, exp.WithinGroup) else "IGNORE NULLS"
            raise NotAsRedshift(f"{name} takes no {what}")
        outer = outer.parent
    window = outer if isinstance(outer, exp.Window) and _called(outer) is call else None
    for distinct in call.expressions:
        if isinstance(distinct, exp.Distinct):
            if name not in _DISTINCT or (window is not None and name != "LISTAGG"):
                raise NotAsRedshift(f"{name} (DISTINCT ...){' OVER' if window else ''}: Redshift has none")
            if len(distinct.expressions) > 1 and name != "LISTAGG":
                raise NotAsRedshift(f"{name} (DISTINCT ...): of one expression")
    if window is not None:
        _check_window(name, window)
    elif name in _WINDOW_ONLY:
        raise NotAsRedshift(f"{name}: it is a window function, with an OVER")


def _check_window(name: str, window: exp.Window) -> None:
    if name not in _AGGREGATES | _VALUES | _RANKINGS | _NEIGHBOURS | _PARTITION_ONLY:
        raise NotAsRedshift(f"{name}: it is no window function")
    has_order, has_frame = bool(window.args.get("order")), bool(window.args.get("spec"))
    if name in _AGGREGATES | _VALUES:
        if has_order and not has_frame:
            raise NotAsRedshift(
                f"{name} OVER (ORDER BY ...): Redshift asks for a frame, such as ROWS UNBOUNDED PRECEDING"
            )
    elif has_frame or (has_order and name in _PARTITION_ONLY):
        raise NotAsRedshift(f"{name} OVER: Redshift takes no {'frame' if has_frame else 'ORDER BY'} here")


def _called(window: exp.Window) -> exp.Expr:
    """Return the call of a window, within its IGNORE NULLS and WITHIN GROUP."""
    call: exp.Expr = window.this
    while isinstance(call, exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        call = call.this
    return call


def _check_tuple(row: exp.Tuple) -> None:
    places = (
        exp.In,
        exp.Insert,
        exp.Values,
        exp.Cube,
        exp.Rollup,
        exp.GroupingSets,
        exp.Group,
        exp.Tuple,
        *_COMPARISONS,
    )
    if not isinstance(row.parent, places):
        raise NotAsRedshift("a row of several values: Redshift compares it, and has no such value")


def _check_with(clause: exp.With) -> None:
    """Check parts that read themselves. https://docs.aws.amazon.com/redshift/latest/dg/r_WITH_clause.html."""
    for part in clause.expressions:
        reads = [
            table for table in part.this.find_all(exp.Table) if table.name == part.alias and not table.db
        ]
        if not reads:
            continue
        union = part.this
        if not part.alias_column_names:
            raise NotAsRedshift(f"{part.alias}: a part that reads itself names its columns")
        if not isinstance(union, exp.Union) or union.args.get("distinct"):
            raise NotAsRedshift(f"{part.alias}: a part that reads itself is a UNION ALL of two queries")
        grouping = (exp.Group, exp.Distinct, exp.Order, exp.Limit, exp.Having)
        if len(reads) > 1 or union.args.get("limit") or union.expression.find(*grouping):
            raise NotAsRedshift(f"{part.alias}: a part reads itself once, and groups and orders nothing")


_CHECKS: Mapping[type[exp.Expr], Any] = {
    **dict.fromkeys((exp.Except, exp.Intersect), _check_set_operation),
    **dict.fromkeys((exp.Like, exp.ILike), _check_like),
    **dict.fromkeys((exp.In, *_COMPARISONS), _check_comparison),
    **dict.fromkeys((exp.IgnoreNulls, exp.RespectNulls), _check_nulls),
    exp.Anonymous: _check_call,
    exp.Group: _check_group,
    exp.Identifier: _check_identifier,
    exp.Interval: _check_interval,
    exp.Join: _check_join,
    exp.Select: _check_select,
    exp.Subquery: _check_subquery,
    exp.Union: _check_branches,
    exp.Star: _check_star,
    exp.Table: _check_table,
    exp.Tuple: _check_tuple,
    exp.With: _check_with,
}
