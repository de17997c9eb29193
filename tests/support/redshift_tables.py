"""What Redshift refuses, or does otherwise, where a statement writes: MERGE, COPY, tables, views, sizes."""

import re
from collections.abc import Iterator

import sqlglot
from sqlglot import exp

from analytics.warehouse.ddl import declared_tables
from analytics.warehouse.models import models
from tests.support.redshift_statement import LATE_BINDING, Statement, rule
from tests.support.redshift_words import (
    CODECS,
    COPY_TAKES,
)

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
