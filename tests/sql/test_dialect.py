"""What is known to fail on Redshift alone is refused here: no engine of the tests would.

Sources: Redshift's lists of reserved words and of unsupported PostgreSQL features.
"""

from collections.abc import Iterator

import pytest
import sqlglot
from sqlglot import exp

from analytics.lake.footers import Footer
from analytics.warehouse.build import statements
from analytics.warehouse.ddl import declared_tables
from analytics.warehouse.merge_sql import merge, stage
from analytics.warehouse.models import models
from analytics.warehouse.translate import DUCKDB, POSTGRES, translate
from rules.engagement.points import RULES
from rules.lake.entities import ENTITIES

RESERVED = set(
    """aes128 aes256 all allowoverwrite analyse analyze and any array as asc authorization az64 backup between
    binary blanksasnull both bytedict bzip2 case cast check collate column constraint create credentials cross
    current_date current_time current_timestamp current_user current_user_id default deferrable deflate defrag
    delta delta32k desc disable distinct do else emptyasnull enable encode encrypt encryption end except explicit
    false for foreign freeze from full globaldict256 globaldict64k grant group gzip having identity ignore ilike in
    initially inner intersect interval into is isnull join leading left like limit localtime localtimestamp lun
    luns lzo lzop minus mostly16 mostly32 mostly8 natural new not notnull null nulls off offline offset oid old on
    only open or order outer overlaps parallel partition percent permissions pivot placing primary raw readratio
    recover references rejectlog resort respect restore right select session_user similar snapshot some sysdate
    system table tag tdes text255 text32k then timestamp to top trailing true truncatecolumns union unique unnest
    unpivot user using verbose wallet when where with without""".split()  # noqa: SIM905 (as quoted words they say no more)
)
# Run on the leader alone, are not there at all, or make a model say something else tomorrow. Looked for as
# tokens: what sqlglot understands it may write differently, and Redshift gets the text as it is.
REFUSED = {
    "age", "array_agg", "clock_timestamp", "current_date", "currentdate", "current_timestamp", "currenttimestamp",
    "generate_series", "getdate", "now", "random", "rand", "string_agg", "sysdate", "to_timestamp", "unnest",
    "user",
}  # fmt: skip


def problems(sql: str) -> Iterator[str]:
    tree = sqlglot.parse_one(sql.strip().removesuffix("WITH NO SCHEMA BINDING"), read="redshift")
    for token in sqlglot.tokenize(sql, read="redshift"):
        if token.text.lower() in REFUSED and token.token_type not in (
            sqlglot.TokenType.STRING,
            sqlglot.TokenType.IDENTIFIER,
        ):
            yield f"refused: {token.text}"
    for node in tree.walk():
        match node:
            case exp.Command():
                yield f"not understood: {node.sql()}"
            case exp.Identifier() if not node.quoted and node.name.lower() in RESERVED:
                yield f"reserved: {node.name}"
            case exp.Window() if _needs_frame(node):
                yield f"a sum over an order needs a frame of ROWS: {node.sql()}"
            case exp.Filter() | exp.Lateral() | exp.NullSafeEQ() | exp.NullSafeNEQ():
                yield f"not in Redshift: {node.sql()}"
            case exp.Distinct() if node.args.get("on"):
                yield "DISTINCT ON"


def _needs_frame(window: exp.Window) -> bool:
    ranking = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.Lag, exp.Lead, exp.Ntile, exp.PercentRank)
    spec = window.args.get("spec")
    if spec is not None and spec.args.get("kind") != "ROWS":
        return True
    return bool(window.args.get("order")) and spec is None and not isinstance(window.this, ranking)


def written() -> Iterator[tuple[str, str]]:
    """Every statement that a run sends, by where it comes from."""
    for table in declared_tables().values():
        yield f"ddl {table.name}", table.sql
    for model in models().values():
        for kind, is_current in ((None, False), ("BASE TABLE", True)):
            for number, sql in enumerate(statements(model, models(), kind, is_current)):
                yield f"{model.name} {is_current} {number}", sql
    for entity in ENTITIES.values():
        columns = [(column.name, column.type) for column in declared_tables()[entity.name].columns[:-1]]
        for number, sql in enumerate([stage("staged_0", columns), *merge(entity, [columns])]):
            yield f"load {entity.name} {number}", sql


WRITTEN = dict(written())


@pytest.mark.parametrize("name", WRITTEN)
def test_redshift_can_run_it(name: str) -> None:
    assert list(problems(WRITTEN[name])) == []
    for dialect in (DUCKDB, POSTGRES):
        assert translate(WRITTEN[name], dialect)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT user FROM marts.t",
        "SELECT SUM(a) OVER (ORDER BY b) FROM t",
        "SELECT SUM(a) OVER (ORDER BY b RANGE UNBOUNDED PRECEDING) FROM t",
        "SELECT GETDATE()",
        "SELECT CURRENT_DATE",
        "SELECT a FROM GENERATE_SERIES(1, 3) AS g",
        "SELECT DISTINCT ON (a) a, b FROM t",
        "SELECT COUNT(*) FILTER (WHERE a > 1) FROM t",
        "SELECT a IS NOT DISTINCT FROM b FROM t",
        "SELECT STRING_AGG(a, ',') FROM t",
    ],
)
def test_problems_are_found(sql: str) -> None:
    assert list(problems(sql))


def test_merge_keeps_to_what_redshift_takes() -> None:
    """No alias of the target, a table as source, equalities, and one WHEN of each kind without conditions."""
    for entity in ENTITIES.values():
        columns = [(column.name, column.type) for column in declared_tables()[entity.name].columns[:-1]]
        tree = sqlglot.parse_one(list(merge(entity, [columns]))[-1], read="redshift")
        assert isinstance(tree, exp.Merge)
        assert not tree.this.alias
        assert isinstance(tree.args["using"], exp.Table)
        assert {type(each) for each in tree.args["on"].flatten()} == {exp.EQ}
        whens = tree.args["whens"].expressions
        assert [bool(each.args.get("matched")) for each in whens] == [True, False]
        assert not any(each.args.get("condition") for each in whens)


def test_event_types_are_the_rule_table() -> None:
    tree = sqlglot.parse_one(models()["dimensions.event_types"].sql, read="redshift")
    rules = next(each for each in tree.find_all(exp.CTE) if each.alias == "rules")
    rows = {
        (select.expressions[0].unalias().name, *(int(each.unalias().name) for each in select.expressions[1:]))
        for select in rules.find_all(exp.Select)
    }
    assert rows == {(name, rule.points, rule.daily_points_max) for name, rule in RULES.items()}


def test_all_columns_are_documented() -> None:
    for model in models().values():
        tree = sqlglot.parse_one(model.sql, read="redshift")
        assert getattr(tree, "named_selects", None) == list(model.columns), model.name
        assert all(model.columns.values()), model.name
        assert model.grain.startswith("one row per ")


def test_footers_have_what_in_is_made_of() -> None:
    assert {"rows_in", "curated", "duplicates", "quarantined"} <= set(Footer.__dataclass_fields__)
