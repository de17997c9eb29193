"""What Redshift refuses, or does otherwise than DuckDB and PostgreSQL: a list, each with AWS's page about it.

No engine of the tests would refuse these statements, so the stand-in for the Data API does (data_api.py): each
statement that any test sends is held against the list. Where telling apart would need Redshift's planner, the
rule is stricter than Redshift. `planted` are statements that break the rule, for the test of the list itself.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.optimizer.scope import traverse_scope

from analytics.warehouse.ddl import declared_tables
from analytics.warehouse.dialect.clauses import RESERVED
from analytics.warehouse.models import models

# sqlglot has no grammar for these. They are short, and written by us.
UNPARSED = re.compile(
    r"LOCK [\w.]+|CREATE ROLE \w+|GRANT (USAGE|SELECT) ON (ALL TABLES IN )?SCHEMA [\w, ]+ TO ROLE \w+"
    r"|ALTER DEFAULT PRIVILEGES IN SCHEMA [\w, ]+ GRANT SELECT ON TABLES TO ROLE \w+"
)
LATE_BINDING = "WITH NO SCHEMA BINDING"


@dataclass(frozen=True)
class Statement:
    """One statement, read as far as a rule needs it."""

    text: str

    @cached_property
    def tokens(self) -> list[Any]:
        return sqlglot.tokenize(self.text, read="redshift")

    @cached_property
    def tree(self) -> Any:
        text = self.text.strip().rstrip(";")
        if UNPARSED.fullmatch(text):
            return exp.Select()
        return sqlglot.parse_one(text.removesuffix(LATE_BINDING), read="redshift")

    def all(self, *kinds: Any) -> Iterator[Any]:
        return iter(self.tree.find_all(*kinds))

    def words(self) -> Iterator[str]:
        """Words outside of quotes. sqlglot may write what it understands differently: Redshift gets the text."""
        quoted = (TokenType.STRING, TokenType.IDENTIFIER)
        return (each.text.lower() for each in self.tokens if each.token_type not in quoted)

    def calls(self) -> Iterator[str]:
        """Names before a parenthesis, and words that are functions without one."""
        for token, then in zip(self.tokens, [*self.tokens[1:], None], strict=True):
            bare = token.text.lower() in {"current_time", "current_timestamp", "localtime"}
            if bare or (then is not None and then.token_type is TokenType.L_PAREN):
                yield token.text.lower()


Find = Callable[[Statement], Iterator[str]]


@dataclass(frozen=True)
class Rule:
    name: str
    page: str
    find: Find
    planted: tuple[str, ...]


RULES: list[Rule] = []


def rule(name: str, page: str, *planted: str) -> Callable[[Find], Find]:
    def add(find: Find) -> Find:
        RULES.append(Rule(name, page if "/" in page else GUIDE + page, find, planted))
        return find

    return add


GUIDE = "https://docs.aws.amazon.com/redshift/latest/dg/"

# GUIDE + c_SQL_functions_leader_node_only.html; the second half is deprecated there
LEADER_ONLY = frozenset(
    """current_schema current_schemas has_database_privilege has_schema_privilege has_table_privilege substr
    factorial log
    age current_time current_timestamp localtime isfinite now getbit get_byte set_bit set_byte
    to_ascii""".split()  # noqa: SIM905
)
# GUIDE + c_unsupported-postgresql-functions.html
UNKNOWN_FUNCTIONS = frozenset(
    """string_agg array_agg every xml_agg corr covar_pop covar_samp regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy clock_timestamp justify_days justify_hours
    justify_interval pg_sleep transaction_timestamp div setseed width_bucket generate_series
    generate_subscripts bit_length overlay convert_from convert_to encode format quote_nullable regexp_matches
    regexp_split_to_array regexp_split_to_table unnest""".split()  # noqa: SIM905
)
# GUIDE + c_unsupported-postgresql-datatypes.html
UNKNOWN_TYPES = frozenset(
    """array bit varbit bytea enum hstore json jsonb inet cidr macaddr serial bigserial smallserial money oid
    name int4range int8range numrange tsrange tstzrange daterange tsvector tsquery txid_snapshot uuid
    xml""".split()  # noqa: SIM905
)
# Today's date in a model would make it say something else tomorrow (sql/README.md).
OF_TODAY = frozenset({"current_date", "getdate", "sysdate", "random", "rand"})
# GUIDE + c_Compression_encodings.html: by codec, the types that it is for. RAW is for all.
CODECS = {
    "AZ64": frozenset({"SMALLINT", "INTEGER", "BIGINT", "DECIMAL", "DATE", "TIMESTAMP", "TIMESTAMPTZ"}),
    "ZSTD": frozenset(
        {"SMALLINT", "INTEGER", "BIGINT", "DECIMAL", "DATE", "TIMESTAMP", "TIMESTAMPTZ"}
        | {"REAL", "DOUBLE PRECISION", "BOOLEAN", "CHAR", "VARCHAR"}
    ),
}
# GUIDE + copy-usage_notes-copy-from-columnar.html: what COPY takes with Parquet
COPY_TAKES = frozenset(
    {
        "ACCEPTINVCHARS",
        "FILLRECORD",
        "FORMAT",
        "IAM_ROLE",
        "CREDENTIALS",
        "STATUPDATE",
        "MANIFEST",
        "EXPLICIT_IDS",
    }
)


VARCHAR_BYTES_MAX, DIGITS_MAX = 65_535, 38


@rule("not understood", "c_SQL_commands.html", "VACUUM marts.t", "EXPLAIN ANALYZE marts.t")
def not_understood(statement: Statement) -> Iterator[str]:
    """What cannot be read cannot be checked. VACUUM and the like also refuse to run in our transactions."""
    yield from (each.sql()[:80] for each in statement.all(exp.Command))


@rule(
    "reserved word",
    "r_pg_keywords.html",
    "SELECT 1 AS tag",
    "SELECT freeze FROM lake.ledger",
    "SELECT user FROM marts.t",
)
def reserved(statement: Statement) -> Iterator[str]:
    for each in statement.all(exp.Identifier):
        if not each.quoted and each.name.lower() in RESERVED:
            yield each.name
    if "user" in set(statement.words()):
        yield "user"


@rule(
    "runs on the leader alone",
    "c_SQL_functions_leader_node_only.html",
    "SELECT SUBSTR(user_id, 1, 3) FROM lake.events",
    "SELECT NOW()",
    "SELECT CURRENT_TIMESTAMP",
    "SELECT AGE(occurred_at) FROM lake.events",
    "SELECT LOG(points_awarded) FROM lake.events",
)
def leader_only(statement: Statement) -> Iterator[str]:
    yield from LEADER_ONLY & set(statement.calls())


@rule(
    "no such function",
    "c_unsupported-postgresql-functions.html",
    "SELECT STRING_AGG(a, ',') FROM marts.t",
    "SELECT a FROM GENERATE_SERIES(1, 3) AS g",
    "SELECT UNNEST(a) FROM marts.t",
    "SELECT CORR(a, b) FROM marts.t",
    "SELECT DIV(a, b) FROM marts.t",
)
def unknown_function(statement: Statement) -> Iterator[str]:
    yield from UNKNOWN_FUNCTIONS & set(statement.calls())


@rule(
    "IS DISTINCT FROM",
    "c_unsupported-postgresql-functions.html",
    "SELECT a IS NOT DISTINCT FROM b FROM marts.t",
)
def null_safe(statement: Statement) -> Iterator[str]:
    yield from (each.sql() for each in statement.all(exp.NullSafeEQ, exp.NullSafeNEQ))


@rule("of today", "../../../sql/README.md", "SELECT CURRENT_DATE", "SELECT GETDATE()", "SELECT RANDOM()")
def of_today(statement: Statement) -> Iterator[str]:
    """No model depends on its day. Whether a streak lives is asked when a query runs."""
    asked = Statement(statement.text.replace("lapses_at > GETDATE()", "TRUE"))
    yield from OF_TODAY & set(asked.words())


@rule(
    "no such type",
    "c_unsupported-postgresql-datatypes.html",
    "SELECT CAST(a AS UUID) FROM marts.t",
    "CREATE TABLE marts.t (a JSONB)",
    "SELECT a::INT[] FROM marts.t",
    "CREATE TABLE marts.t (a BIGSERIAL)",
)
def unknown_type(statement: Statement) -> Iterator[str]:
    for each in statement.all(exp.DataType):
        if each.this.value.lower() in UNKNOWN_TYPES:
            yield each.sql("redshift")


@rule(
    "a text of 256 bytes",
    "r_Character_types.html",
    "SELECT CAST(a AS VARCHAR) FROM marts.t",
    "CREATE TABLE marts.t (a TEXT)",
    "SELECT a::TEXT FROM marts.t",
    "CREATE TABLE marts.t (a VARCHAR(65536))",
    "CREATE TABLE marts.t (a CHAR(4097))",
)
def text_size(statement: Statement) -> Iterator[str]:
    """VARCHAR and TEXT without a size are VARCHAR(256), in bytes; elsewhere they have no limit."""
    for each in statement.all(exp.DataType):
        kind, size = each.this.value, each.expressions[0].name if each.expressions else ""
        if kind in ("VARCHAR", "TEXT", "NVARCHAR"):
            if not size.isdecimal() or int(size) > VARCHAR_BYTES_MAX:
                yield each.sql("redshift")
        elif kind in ("CHAR", "NCHAR", "BPCHAR") and size.isdecimal() and int(size) > 4096:
            yield each.sql("redshift")


@rule("more than 38 digits", "r_Numeric_types201.html", "SELECT CAST(a AS DECIMAL(39, 2)) FROM marts.t")
def digits(statement: Statement) -> Iterator[str]:
    for each in statement.all(exp.DataType):
        if each.this.value == "DECIMAL" and each.expressions and int(each.expressions[0].name) > DIGITS_MAX:
            yield each.sql("redshift")


@rule(
    "finer than a microsecond",
    "r_Datetime_types.html",
    "SELECT TIMESTAMP '2026-01-31 12:00:00.1234567'",
    "SELECT CAST('2026-01-31 12:00:00.123456789' AS TIMESTAMP)",
)
def microseconds(statement: Statement) -> Iterator[str]:
    for each in statement.all(exp.Literal):
        if each.is_string and re.fullmatch(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\.\d{7,}.*", each.name):
            yield each.name


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


SQL_BYTES_MAX, API_BYTES_MAX = 16 * 1024 * 1024, 100_000
NAME_BYTES_MAX, COLUMNS_MAX = 127, 1_600


MERGED = "MERGE INTO lake.t USING fresh ON lake.t.a = fresh.a"
BOTH = (
    "WHEN MATCHED THEN UPDATE SET b = fresh.b WHEN NOT MATCHED THEN INSERT (a, b) VALUES (fresh.a, fresh.b)"
)


@rule(
    "a MERGE that Redshift does not take",
    "r_MERGE.html",
    f"MERGE INTO lake.t AS t USING fresh ON t.a = fresh.a {BOTH}",
    f"MERGE INTO lake.t USING (SELECT * FROM fresh) AS f ON lake.t.a = f.a {BOTH.replace('fresh', 'f')}",
    f"MERGE INTO lake.t USING fresh ON lake.t.a = fresh.a AND lake.t.b > 3 {BOTH}",
    f"{MERGED} WHEN MATCHED AND fresh.b > 1 THEN UPDATE SET b = fresh.b WHEN NOT MATCHED THEN INSERT VALUES (1)",
    f"{MERGED} WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET b = 1 WHEN NOT MATCHED THEN INSERT VALUES (1)",
    f"{MERGED} WHEN MATCHED THEN UPDATE SET b = 1",
    f"MERGE INTO lake.t USING lake.t ON lake.t.a = lake.t.a {BOTH.replace('fresh', 'lake.t')}",
)
def merges(statement: Statement) -> Iterator[str]:
    tree = statement.tree
    if not isinstance(tree, exp.Merge):
        return
    source, whens = tree.args["using"], tree.args["whens"].expressions
    if tree.this.alias:
        yield "an alias of the target"
    if not isinstance(source, exp.Table):
        yield "a source that is no table"
    elif source.sql() == tree.this.sql():
        yield "a source that is the target"
    if {type(each) for each in tree.args["on"].flatten()} - {exp.EQ, exp.And}:
        yield "a condition that is no equality"
    if [bool(each.args.get("matched")) for each in whens] != [True, False]:
        yield "other than one WHEN MATCHED and one WHEN NOT MATCHED"
    if any(each.args.get("condition") for each in whens):
        yield "a condition of a WHEN"


@rule(
    "a parameter that COPY from Parquet does not take",
    "copy-usage_notes-copy-from-columnar.html",
    "COPY t FROM 's3://b/m' IAM_ROLE 'r' FORMAT AS PARQUET MAXERROR 5",
    "COPY t FROM 's3://b/m' IAM_ROLE 'r' FORMAT AS PARQUET ACCEPTANYDATE",
    "COPY t FROM 's3://b/m' IAM_ROLE 'r' FORMAT AS PARQUET REGION 'eu-west-1'",
    "COPY t (a, b) FROM 's3://b/m' IAM_ROLE 'r' FORMAT AS PARQUET",
    "COPY t FROM 's3://b/m' IAM_ROLE 'r' FORMAT AS PARQUET GZIP",
)
def copies(statement: Statement) -> Iterator[str]:
    if not isinstance(statement.tree, exp.Copy):
        return
    match = re.fullmatch(r"COPY (\S+) FROM '[^']*' (.*)", statement.text.strip(), re.DOTALL)
    if match is None:
        yield "columns are taken by position, so none are named"
        return
    words = re.sub(r"'[^']*'|\b(AS|PARQUET)\b|\b\d+\b", " ", match[2]).upper().split()
    yield from sorted(set(words) - COPY_TAKES)


@rule(
    "too many bytes",
    "https://docs.aws.amazon.com/redshift-data/latest/APIReference/API_BatchExecuteStatement.html",
    f"SELECT '{'é' * 50_000}'",
    f"SELECT '{'x' * SQL_BYTES_MAX}'",
)
def size(statement: Statement) -> Iterator[str]:
    """The Data API takes 100 KB; Redshift itself 16 MB (GUIDE + c_redshift-sql.html)."""
    if len(statement.text.encode()) > API_BYTES_MAX:
        yield f"{len(statement.text.encode()):,} bytes"


def layout_keys(sql: str) -> set[str]:
    """The distribution and sort keys of a CREATE TABLE."""
    layout = sqlglot.parse_one(sql, read="redshift").find_all(exp.DistKeyProperty, exp.SortKeyProperty)
    return {each.name for part in layout for each in part.find_all(exp.Identifier)}


def keys_of(table: str) -> set[str]:
    """The distribution and sort keys of a table or model of ours."""
    schema, _, name = table.partition(".")
    if schema == "lake" and name in declared_tables():
        return layout_keys(declared_tables()[name].sql)
    model = models().get(table)
    return {*model.sort, *([model.dist] if model.dist else [])} if model else set()


LAYOUT = (exp.DistKeyProperty, exp.SortKeyProperty)


@rule(
    "a change of a table that Redshift refuses",
    "r_ALTER_TABLE.html",
    "ALTER TABLE lake.events ALTER COLUMN zone TYPE VARCHAR(128)",
    'ALTER TABLE lake.events DROP COLUMN "user_id"',
    "ALTER TABLE lake.events DROP COLUMN occurred_at",
    "ALTER TABLE lake.events ADD COLUMN a BIGINT, ADD COLUMN b BIGINT",
    "ALTER TABLE lake.events ADD COLUMN a BIGINT NOT NULL",
)
def alters(statement: Statement) -> Iterator[str]:
    """All our statements run in a transaction, where a column's type cannot be altered."""
    tree = statement.tree
    if not isinstance(tree, exp.Alter):
        return
    actions = tree.args["actions"]
    if len(actions) > 1:
        yield "more than one column at once"
    for each in actions:
        if isinstance(each, exp.AlterColumn):
            yield "a column's type within a transaction"
        dropped = (
            {part.name for part in each.find_all(exp.Identifier)} if isinstance(each, exp.Drop) else set()
        )
        if dropped & keys_of(tree.this.sql()):
            yield "a distribution or sort key is dropped"
        required = each.find(exp.NotNullColumnConstraint) if isinstance(each, exp.ColumnDef) else None
        if required is not None and each.find(exp.DefaultColumnConstraint) is None:
            yield "a column that is required, without a default"


@rule(
    "a layout that Redshift refuses",
    "r_CREATE_TABLE_NEW.html",
    "CREATE TABLE marts.t (a BIGINT ENCODE AZ64) DISTSTYLE KEY DISTKEY (b)",
    "CREATE TABLE marts.t (a BIGINT ENCODE AZ64) COMPOUND SORTKEY (b)",
    "CREATE TABLE marts.t (a BIGINT) DISTSTYLE ALL DISTKEY (a)",
    "CREATE TABLE marts.t DISTSTYLE KEY DISTKEY (b) AS SELECT a FROM marts.u",
    f"CREATE TABLE marts.t ({', '.join(f'c{n} BIGINT' for n in range(COLUMNS_MAX + 1))})",
)
def layouts(statement: Statement) -> Iterator[str]:
    tree = statement.tree
    if not isinstance(tree, exp.Create) or tree.args.get("kind") != "TABLE":
        return
    columns = [each.name for each in tree.find_all(exp.ColumnDef)]
    query = tree.args.get("expression")
    columns = columns or (query.named_selects if query is not None else [])
    if len(columns) > COLUMNS_MAX:
        yield f"{len(columns)} columns"
    for key in tree.find_all(*LAYOUT):
        yield from (
            ({each.name for each in key.find_all(exp.Identifier)} - set(columns))
            if "*" not in columns
            else ()
        )
    style = tree.find(exp.DistStyleProperty)
    if tree.find(exp.DistKeyProperty) and style is not None and style.this.name != "KEY":
        yield f"DISTKEY with DISTSTYLE {style.this.name}"


@rule(
    "a codec that is not for the type",
    "c_Compression_encodings.html",
    "CREATE TABLE marts.t (a VARCHAR(9) ENCODE AZ64)",
    "CREATE TABLE marts.t (a BOOLEAN ENCODE AZ64)",
    "CREATE TABLE marts.t (a BIGINT ENCODE SNAPPY)",
)
def codecs(statement: Statement) -> Iterator[str]:
    for column in statement.all(exp.ColumnDef):
        encode = column.find(exp.EncodeColumnConstraint)
        kind = column.args["kind"].sql("redshift").partition("(")[0] if column.args.get("kind") else ""
        name = encode.this.name.upper() if encode is not None else "RAW"
        if name != "RAW" and kind not in CODECS.get(name, ()):
            yield f"{kind} ENCODE {name}"


@rule(
    "a late-binding view needs schemas",
    "r_CREATE_VIEW.html",
    f"CREATE VIEW marts.v AS SELECT a FROM t {LATE_BINDING}",
)
def late_binding(statement: Statement) -> Iterator[str]:
    if statement.text.rstrip().endswith(LATE_BINDING):
        made = {each.alias for each in statement.all(exp.CTE)}
        yield from (each.name for each in statement.all(exp.Table) if not each.db and each.name not in made)


@rule("a name of more than 127 bytes", "r_names.html", f"SELECT 1 AS {'n' * 128}")
def names(statement: Statement) -> Iterator[str]:
    for each in statement.all(exp.Identifier):
        if len(each.name.encode()) > NAME_BYTES_MAX:
            yield each.name


@rule("commits what came before", "r_TRUNCATE.html", "TRUNCATE lake.events")
def commits(statement: Statement) -> Iterator[str]:
    yield from (each.key for each in statement.all(exp.TruncateTable))


@lru_cache(maxsize=4096)
def found(sql: str) -> tuple[str, ...]:
    """What of the list a statement breaks: the rule's name and the place."""
    statement = Statement(sql)
    return tuple(f"{each.name}: {place}" for each in RULES for place in each.find(statement))


def problems(sql: str) -> Iterator[str]:
    return iter(found(sql))
