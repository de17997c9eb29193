"""Features of leads as of any past instant, from the lake's events, for training sets.

A row is what the live table would have shown at that instant if every event had arrived in time. Example: an
order of 2 March does not count in a row as of 1 March. The declaration is the live path's
(rules.leads.features), and all arithmetic is in whole numbers.

A *label* is a lead and an instant, as of which the caller asks for features. `point_in_time` makes temporary
tables of the labels and of the events that they ask for (`_create_tables`). Then one query sums up the events
of each label's lead (`_features_query`).
"""

from collections.abc import Collection, Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import Objects
from analytics.lake import curated_files
from analytics.lake.arrow import ARROW
from analytics.lake.curated_files import arrow_table, connect, query
from analytics.leads.series_parts import (
    DUCKDB_DIVISION,
    PRICED,
    ROWS,
    SERIES,
    amount_part,
    count_part,
    features_of,
    row_columns,
    value_sql,
    windows_of,
)
from rules.lake.entities import Type
from rules.leads.features import CAMPAIGN_GRACE_DAYS, FEATURES, Feature, Input, Unit
from rules.leads.lake_entities import LEAD_EVENTS, column_of
from rules.leads.lead_events import CAMPAIGN_SENT

# ruff: noqa: S608 (what the statements are made of is our own declaration)

Names = Collection[str] | None
LEAD, AS_OF = "lead_organization_id", "as_of"
COLUMNS = {
    column_of(feature): ARROW[Type.BOOLEAN if feature.unit is Unit.FLAG else Type.INTEGER]
    for feature in FEATURES
}
READERS = 4  # files that are fetched at once
LABELS_AT_ONCE = 250_000  # the sums for this many labels fit into memory


def point_in_time(
    objects: Objects,
    labels: pa.Table,
    *,
    known_by: bool = False,
    organizations: Names = None,
    grace_days: int = CAMPAIGN_GRACE_DAYS,
) -> pa.Table:
    """Return the labels, in their order, with one more column for each feature, in whole units.

    labels: lead_organization_id (text), as_of (timestamp with a zone), and any other columns, which pass
    through. Labels may come in any order and more than once.
    known_by: an event that occurred after as_of is never used. With this, none that was received after as_of
    is used either, so late arrivals cannot leak into the past. It is off by default, because a history may be
    loaded at once.
    organizations: those that the caller belongs to. Events of others are not read. None: all are read.
    grace_days: of campaigns, the deployment's setting.

    Leads that were merged at as_of each get the features of their group. Days and averages of nothing are
    null; sums and counts of nothing are 0. A lead of whom nothing was known at as_of has null in every
    feature. Raises ValueError for labels of another shape.
    """
    _check_labels(labels)
    features_query = _features_query(grace_days)
    with connect() as db, arrow_table(db, "input_labels", _numbered_labels(labels)):
        _create_tables(db, objects, known_by, organizations)
        parts = [
            query(db, features_query, [at, at + LABELS_AT_ONCE])
            for at in range(0, max(labels.num_rows, 1), LABELS_AT_ONCE)
        ]
    features = pa.concat_tables(parts)
    for name in COLUMNS:
        labels = labels.append_column(name, features[name])
    return labels


def training_set(  # noqa: PLR0913 (settings, by name)
    objects: Objects,
    labels_path: Path,
    out_path: Path,
    *,
    known_by: bool = False,
    organizations: Names = None,
    grace_days: int = CAMPAIGN_GRACE_DAYS,
) -> int:
    """Write the labels of a Parquet file with their features to another one; returns the number of rows.

    Shapes, settings and errors: see point_in_time.
    """
    labels = pq.read_table(labels_path)
    rows = point_in_time(
        objects, labels, known_by=known_by, organizations=organizations, grace_days=grace_days
    )
    pq.write_table(rows, out_path, compression="zstd")
    return int(rows.num_rows)


def _check_labels(labels: pa.Table) -> None:
    """Raise ValueError for labels of another shape than `point_in_time` takes."""
    for name in (LEAD, AS_OF):
        if labels.column_names.count(name) != 1:
            raise ValueError(f"labels must have one column {name}")
        if labels[name].null_count:
            raise ValueError(f"{name} is null in {labels[name].null_count} labels")
    kind = labels.schema.field(AS_OF).type
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        raise ValueError(f"{AS_OF} must be a timestamp with a zone, not {kind}")
    if taken := sorted(COLUMNS.keys() & set(labels.column_names)):
        raise ValueError(f"labels have columns of the names of features: {', '.join(taken)}")


def _numbered_labels(labels: pa.Table) -> pa.Table:
    """Return the labels as n (their index), lead and as_of (microseconds, UTC)."""
    moments = labels[AS_OF].cast(pa.timestamp("us", "UTC"), safe=False)  # cuts nanoseconds off
    numbers = pa.array(np.arange(labels.num_rows))
    return pa.table({"n": numbers, "lead": labels[LEAD].cast(pa.string()), "as_of": moments})


def _day(instant: str) -> str:
    """Return the expression for an instant's date, in days since 1970-01-01.

    A cast of the instant to a date would look up the database's time zone, and take eight times as long.
    """
    return f"(make_timestamp(epoch_us({instant}))::DATE - DATE '1970-01-01')::INTEGER"


# The statements that make the tables, in the order in which they run:
#     input_labels -> labels; identity changes -> members (leaf, root, since, until)
#     labels and members -> label_leaves (a label and one leaf of its group) -> leaves -> pairs
#     leaves -> events; pairs and events -> cancelling_labels
# Instants are microseconds since 1970. An event counts for labels from its usable_at on. Its leaf is the lead
# that it names itself. Leaves of one person form a group, and one of them is the root (docs/glossary.md). A
# change of identity is a list of leaves: from then on its first leaf is the root of all of them. Of the
# changes that a label sees and that name a leaf, the one with the highest number says the leaf's root. This
# root holds until a change with a higher number is usable.
_MEMBERS = """CREATE TEMP TABLE members AS
WITH groups AS (
    SELECT change_number AS number, usable_at, unnest(from_json(change_groups, '[["VARCHAR"]]')) AS leaves
    FROM {usable_events} WHERE change_number IS NOT NULL
),
assignments AS (
    SELECT number, usable_at AS since, leaves[1] AS root, unnest(leaves) AS leaf FROM groups
)
SELECT leaf, root, since, COALESCE(MIN(since) OVER later, 9223372036854775807) AS until FROM assignments
WINDOW later AS (PARTITION BY leaf ORDER BY number ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)"""
_LABELS = f"""CREATE TEMP TABLE labels AS
SELECT n, lead, epoch_us(as_of) AS moment, {_day("as_of")} AS day FROM input_labels"""
_LABEL_LEAVES = """CREATE TEMP TABLE label_leaves AS
WITH rooted AS (
    SELECT n, moment, day, COALESCE(root, lead) AS root
    FROM labels LEFT JOIN members ON leaf = lead AND since <= moment AND moment < until
)
SELECT n, COALESCE(leaf, rooted.root) AS leaf, moment, day
FROM rooted LEFT JOIN members ON members.root = rooted.root AND since <= moment AND moment < until"""
# Leaves get numbers. So ids are compared once for each event, and not once for each label of its lead.
_LEAVES = """CREATE TEMP TABLE leaves AS
SELECT leaf, row_number() OVER ()::INTEGER AS number FROM (SELECT DISTINCT leaf FROM label_leaves)"""
_PAIRS = """CREATE TEMP TABLE pairs AS
SELECT n, number AS leaf, moment, day FROM label_leaves JOIN leaves USING (leaf)"""
# Labels whose lead has cancelled an order. A cancellation takes back an order of its date, so only the sum of
# a date tells whether the date counts. For other labels any event of a date makes it count.
_CANCELLING_LABELS = f"""CREATE TEMP TABLE cancelling_labels AS
SELECT DISTINCT n FROM pairs
SEMI JOIN (SELECT leaf FROM events WHERE {Input.PURCHASES}_count < 0) AS cancelled USING (leaf)"""


def _create_tables(
    db: duckdb.DuckDBPyConnection, objects: Objects, known_by: bool, organizations: Names
) -> None:
    """Make the tables of labels, of the leaves that they ask for, and of these leaves' events."""
    usable_at = "greatest(occurred_at, received_at)" if known_by else "occurred_at"
    is_usable = "unreadable IS NULL"
    if organizations is not None:
        db.execute("SET VARIABLE organizations = ?", [list(organizations)])
        is_usable += " AND list_contains(getvariable('organizations'), organization_id)"
    rows = f"SELECT *, epoch_us({usable_at}) AS usable_at FROM lake_events WHERE {is_usable}"
    statements = (_MEMBERS, _LABELS, _LABEL_LEAVES, _LEAVES, _PAIRS, _events(), _CANCELLING_LABELS)
    with curated_files.table_of(db, "lake_events", objects, LEAD_EVENTS.name, READERS):
        for statement in statements:
            db.execute(statement.format(usable_events=f"({rows}) AS usable_events"))


def _events() -> str:
    """Return the statement that makes the table of events, with what each of them adds to every series."""
    columns = [
        f"CASE WHEN {ROWS[series].where} THEN {getattr(ROWS[series], column)} END AS {series}_{column}"
        for series in SERIES
        for column in row_columns(series)
    ]
    return f"""CREATE TEMP TABLE events AS
SELECT
    number AS leaf, usable_at, {_day("occurred_at")} AS day, campaign_id AS campaign,
    event_type = '{CAMPAIGN_SENT}' AS is_sent, {", ".join(columns)}
FROM {{usable_events}} JOIN leaves ON leaves.leaf = usable_events.{LEAD}"""


def _features_query(grace_days: int) -> str:
    """Return the query that sums up the events of each label's lead, and computes the features from the sums.

    $1, $2: the numbers of the first label, and of the one after the last. The query also names counts that no
    feature uses. DuckDB leaves out their computation.
    """
    columns = ", ".join(map(_feature_column, FEATURES))
    parts = ", ".join(part for series in SERIES for part in _part_columns(series))
    return f"""WITH asked AS (SELECT * FROM labels WHERE n >= $1 AND n < $2),
    counted_events AS NOT MATERIALIZED (
        SELECT pairs.n, pairs.day AS today, events.* FROM pairs
        JOIN events ON events.leaf = pairs.leaf AND events.usable_at <= pairs.moment
        WHERE pairs.n >= $1 AND pairs.n < $2
    ),
    sums AS (SELECT n, {parts} FROM counted_events GROUP BY n),
    dates_after_cancellations AS ({_dates_after_cancellations()}),
    series AS (
        SELECT sums.* REPLACE ({", ".join(map(_purchase_date, ("first_day", "last_day")))})
        FROM sums LEFT JOIN cancelling_labels ON cancelling_labels.n = sums.n
        LEFT JOIN dates_after_cancellations AS dates ON dates.n = sums.n
    ),
    campaigns AS ({_campaigns(grace_days)})
    SELECT {columns} FROM asked LEFT JOIN series ON series.n = asked.n
    LEFT JOIN campaigns ON campaigns.n = asked.n ORDER BY asked.n"""


def _part_columns(input_: Input) -> Iterator[str]:
    """Yield the expressions of the parts of an input's features (series_parts.py)."""
    yield f"MIN(day) FILTER ({input_}_count > 0) AS {input_}_first_day"
    yield f"MAX(day) FILTER ({input_}_count > 0) AS {input_}_last_day"
    columns = row_columns(input_)
    if PRICED in columns:
        yield f"SUM({input_}_{PRICED}) AS {input_}_{PRICED}"
    for window in (None, *windows_of(input_)):
        inside = f" FILTER (day > today - {window})" if window else ""
        yield f"SUM({input_}_count){inside} AS {input_}_{count_part(window)}"
        if "amount" in columns:
            yield f"SUM({input_}_amount){inside} AS {input_}_{amount_part(window)}"


def _dates_after_cancellations() -> str:
    """Return the query for the first and last date that counts, of labels with a cancelled order."""
    count = f"{Input.PURCHASES}_count"
    return f"""SELECT n, MIN(day) AS first_day, MAX(day) AS last_day FROM (
        SELECT n, day FROM counted_events SEMI JOIN cancelling_labels USING (n) WHERE {count} IS NOT NULL
        GROUP BY n, day HAVING SUM({count}) > 0
    ) AS counted GROUP BY n"""


def _purchase_date(name: str) -> str:
    """Return the expression for a label's first or last purchase date that counts."""
    column = f"{Input.PURCHASES}_{name}"
    return f"CASE WHEN cancelling_labels.n IS NULL THEN sums.{column} ELSE dates.{name} END AS {column}"


def _campaigns(grace_days: int) -> str:
    """Return the query for how many campaigns in the window a label's lead was sent and never reacted to."""
    (feature,), (window,) = features_of(Input.CAMPAIGNS), windows_of(Input.CAMPAIGNS)
    return f"""SELECT n, COUNT(*) AS {feature.name} FROM (
        SELECT n, ANY_VALUE(today) AS today, MAX(day) FILTER (is_sent) AS sent
        FROM counted_events WHERE campaign IS NOT NULL GROUP BY n, campaign HAVING BOOL_AND(is_sent)
    ) AS unanswered WHERE sent > today - {window} AND sent <= today - {grace_days} GROUP BY n"""


def _feature_column(feature: Feature) -> str:
    """Return a feature's column. It is NULL for a label of whose lead nothing was known."""
    if feature.input is Input.CAMPAIGNS:
        value = f"COALESCE({feature.input}.{feature.name}, 0)"
    else:
        value = value_sql(feature, "asked.day", DUCKDB_DIVISION, f"series.{feature.input}_")
    type_ = "BOOLEAN" if feature.unit is Unit.FLAG else "BIGINT"
    return f"(CASE WHEN series.n IS NOT NULL THEN {value} END)::{type_} AS {column_of(feature)}"
