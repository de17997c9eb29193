"""What Redshift refuses, or does otherwise, in a query: windows, syntax, subqueries, recursion, patterns."""

from collections.abc import Iterator

from sqlglot import TokenType, exp
from sqlglot.optimizer.scope import traverse_scope

from tests.support.redshift_statement import Statement, rule

RANKING = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.Lag, exp.Lead, exp.Ntile, exp.PercentRank)


@rule(
    "a frame that is not of ROWS",
    "c_Window_functions.html",
    "SELECT SUM(a) OVER (ORDER BY b) FROM marts.t",
    "SELECT SUM(a) OVER (ORDER BY b RANGE UNBOUNDED PRECEDING) FROM marts.t",
    "SELECT LAST_VALUE(a) OVER (ORDER BY b) FROM marts.t",
    "SELECT SUM(a) OVER (ORDER BY b GROUPS UNBOUNDED PRECEDING) FROM marts.t",
)
def frames(statement: Statement) -> Iterator[str]:
    for window in statement.all(exp.Window):
        spec = window.args.get("spec")
        needed = window.args.get("order") and not isinstance(window.this, RANKING)
        if spec.args.get("kind") != "ROWS" if spec is not None else needed:
            yield window.sql()


@rule(
    "DISTINCT over a window", "r_WF_COUNT.html", "SELECT COUNT(DISTINCT a) OVER (PARTITION BY b) FROM marts.t"
)
def distinct_window(statement: Statement) -> Iterator[str]:
    for window in statement.all(exp.Window):
        if window.this.find(exp.Distinct):
            yield window.sql()


@rule(
    "no such syntax",
    "c_unsupported-postgresql-features.html",
    "SELECT DISTINCT ON (a) a, b FROM marts.t",
    "SELECT COUNT(*) FILTER (WHERE a > 1) FROM marts.t",
    "SELECT t.a FROM marts.t AS t, LATERAL (SELECT t.a) AS l",
    "SELECT a FROM (VALUES (1), (2)) AS v (a)",
    "INSERT INTO marts.t VALUES (1) ON CONFLICT DO NOTHING",
    "DELETE FROM marts.t RETURNING a",
    "SELECT ARRAY[1, 2]",
    "SELECT a -> 'b' FROM marts.t",
    "SELECT a ->> 'b' FROM marts.t",
    "CREATE INDEX i ON marts.t (a)",
    "SELECT a FROM marts.t FOR UPDATE",
)
def syntax(statement: Statement) -> Iterator[str]:
    kinds = (exp.Filter, exp.Lateral, exp.Values, exp.OnConflict, exp.Returning, exp.Array, exp.Lock)
    for each in statement.all(*kinds):
        if not isinstance(each, exp.Values) or not isinstance(each.parent, exp.Insert):
            yield each.sql()
    yield from ("DISTINCT ON" for each in statement.all(exp.Distinct) if each.args.get("on"))
    yield from (
        each.text for each in statement.tokens if each.token_type in (TokenType.ARROW, TokenType.DARROW)
    )
    yield from ("an index" for each in statement.all(exp.Create) if each.args.get("kind") == "INDEX")


@rule(
    "ALL after EXCEPT or INTERSECT",
    "r_UNION.html",
    "SELECT a FROM marts.t EXCEPT ALL SELECT a FROM marts.u",
    "SELECT a FROM marts.t INTERSECT ALL SELECT a FROM marts.u",
)
def set_operations(statement: Statement) -> Iterator[str]:
    for each in statement.all(exp.Except, exp.Intersect):
        if not each.args.get("distinct"):
            yield each.key


@rule(
    "a correlated subquery",
    "r_correlated_subqueries.html",
    "SELECT a FROM marts.t WHERE EXISTS (SELECT 1 FROM marts.u WHERE u.a = t.a)",
    "SELECT t.a, (SELECT MAX(u.b) FROM marts.u AS u WHERE u.a = t.a) AS b FROM marts.t AS t",
    "SELECT e.a FROM marts.e AS e WHERE NOT EXISTS (SELECT 1 FROM marts.l AS l WHERE NOT EXISTS (SELECT 1 FROM marts.s AS s WHERE e.a = s.a))",
)
def correlated(statement: Statement) -> Iterator[str]:
    """Redshift refuses five patterns, as its planner finds them. We need none, so none may be."""
    tree = statement.tree
    query = tree if isinstance(tree, exp.Query) else tree.find(exp.Query)
    for scope in traverse_scope(query) if query is not None and query.args.get("expressions") else []:
        outer = [each for each in scope.external_columns if each.table]
        if scope.is_subquery and outer:
            yield outer[0].sql()


@rule(
    "a recursion that Redshift does not take",
    "r_WITH_clause.html",
    "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT i FROM n",
    "WITH RECURSIVE n (i) AS (SELECT 1 AS i UNION SELECT i + 1 FROM n WHERE i < 9) SELECT i FROM n",
    "WITH RECURSIVE n (i) AS (SELECT 1 AS i UNION ALL SELECT MAX(i) FROM n WHERE i < 9) SELECT i FROM n",
    "WITH RECURSIVE n (i) AS (SELECT 1 AS i UNION ALL SELECT a.i + b.i FROM n AS a CROSS JOIN n AS b) SELECT i FROM n",
    "WITH RECURSIVE n (i) AS (SELECT 1 AS i UNION ALL SELECT i FROM marts.t WHERE i IN (SELECT i FROM n)) SELECT i FROM n",
    "WITH RECURSIVE n (i) AS (SELECT 1 AS i UNION ALL SELECT n.i FROM marts.t LEFT JOIN n ON n.i = t.i) SELECT i FROM n",
    "WITH RECURSIVE n (i) AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n ORDER BY i LIMIT 3) SELECT i FROM n",
)
def recursive(statement: Statement) -> Iterator[str]:
    """Named columns, UNION ALL of a start and a step; the step reads itself once, plainly, and groups nothing."""
    for each in statement.all(exp.CTE):
        reads = [
            table for table in each.this.find_all(exp.Table) if table.name == each.alias and not table.db
        ]
        if not reads:
            continue
        if not each.alias_column_names:
            yield f"{each.alias} does not name its columns"
        union = each.this
        if type(union) is not exp.Union or union.args.get("distinct") or union.args.get("limit"):
            yield f"{each.alias} is no UNION ALL of two queries"
            continue
        step = union.expression
        grouped = step.find(exp.AggFunc, exp.Group, exp.Distinct, exp.Order, exp.Limit, exp.Subquery, exp.In)
        outer = any(join.side for join in step.find_all(exp.Join))
        if len(reads) > 1 or grouped is not None or outer:
            yield f"{each.alias}: its step does more than to read itself once"


@rule(
    "a pattern that POSIX operators do not know",
    "pattern-matching-conditions-posix.html",
    r"SELECT a ~ '^\\d+$' FROM marts.t",
    "SELECT a ~ '(?=x)y' FROM marts.t",
)
def patterns(statement: Statement) -> Iterator[str]:
    """Perl's classes and look-around are REGEXP_ functions' with the parameter p; PostgreSQL has them everywhere."""
    for each in statement.all(exp.RegexpLike, exp.RegexpILike):
        literal = each.expression
        if isinstance(literal, exp.Literal) and ("\\" in literal.name or "(?" in literal.name):
            yield literal.name


@rule("an average of whole numbers", "r_AVG.html", "SELECT AVG(points_awarded) FROM lake.events")
def averages(statement: Statement) -> Iterator[str]:
    """Its type and rounding differ among the three engines: say CAST(... AS DOUBLE PRECISION) or DECIMAL."""
    for each in statement.all(exp.Avg):
        if not isinstance(each.this, exp.Cast):
            yield each.sql()
