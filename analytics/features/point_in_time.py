"""Features of leads as of any past instant, from the lake's events, for training sets.

A row is what the live table would have shown at that instant if every event had arrived in time. Example: an
order of 2 March does not count in a row as of 1 March. The declaration is the live path's
(rules.leads.features), and all arithmetic is in whole numbers.
"""

# ruff: noqa: S608 (what the statements are made of is our own declaration)

from collections.abc import Collection, Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import Objects
from analytics.features.labels import COLUMNS, LEAD, check, numbered
from analytics.features.series_parts import (
    DUCKDB_DIVISION,
    PRICED,
    ROWS,
    SERIES,
    amount_part,
    count_part,
    features_of,
    value_sql,
    windows_of,
)
from analytics.lake import curated_files
from analytics.lake.duckdb_memory import connect, query, registered
from rules.lake.entities import LEAD_EVENTS
from rules.lake.lead_entities import column_of
from rules.leads.features import CAMPAIGN_GRACE_DAYS, FEATURES, Feature, Input
from rules.leads.lead_events import CAMPAIGN_SENT

Names = Collection[str] | None
READERS = 4  # files that are fetched at once
LABELS_AT_ONCE = 250_000  # the sums for so many labels fit into memory


def training_set(
    objects: Objects,
    labels_path: Path,
    out_path: Path,
    *,
    known_by: bool = False,
    organizations: Names = None,
) -> int:
    """Write the labels of a Parquet file with their features to another one; returns the number of rows.

    `point_in_time` tells the shapes of labels and result. Raises ValueError for labels of another shape.
    """
    labels = pq.read_table(labels_path)
    found = point_in_time(objects, labels, known_by=known_by, organizations=organizations)
    pq.write_table(found, out_path, compression="zstd")
    return int(found.num_rows)


def point_in_time(
    objects: Objects, labels: pa.Table, *, known_by: bool = False, organizations: Names = None
) -> pa.Table:
    """Return the labels, in their order, with one more column for each feature, in whole units.

    labels: lead_organization_id (text), as_of (timestamp with a zone), and any others, which pass through.
    Labels may come in any order and more than once.
    No event that occurred after as_of is used. With known_by, no event that was received after as_of is used
    either, so late arrivals cannot leak into the past. It is off by default: a history may be loaded at once.
    organizations: those that the caller belongs to; nothing is known of leads of others (None: all are read).
    Leads that were one at as_of share their features: each of them gets those of the group.
    Days and averages of nothing are null; sums and counts of nothing are 0. A lead of whom nothing was known
    at as_of has null in every feature.
    Raises ValueError for labels of another shape.
    """
    check(labels)
    with connect() as db:
        _read(db, objects, known_by, organizations)
        parts = [
            _answered(db, labels.slice(at, LABELS_AT_ONCE))
            for at in range(0, max(labels.num_rows, 1), LABELS_AT_ONCE)
        ]
    found = pa.concat_tables(parts)
    for name, kind in COLUMNS.items():
        labels = labels.append_column(name, found[name].cast(kind))
    return labels


def _read(
    db: duckdb.DuckDBPyConnection, objects: Objects, known_by: bool, organizations: Collection[str] | None
) -> None:
    """Make the tables of events and of groups."""
    with curated_files.table_of(db, "read", objects, LEAD_EVENTS.name, READERS):
        db.execute(_events(known_by=known_by))
    if organizations is not None:
        db.execute(_OTHERS, [list(organizations)])
    db.execute(_MEMBERS)


def _answered(db: duckdb.DuckDBPyConnection, labels: pa.Table) -> pa.Table:
    """Return the features of some labels, in the labels' order."""
    with registered(db, "given", numbered(labels)):
        for statement in (_LABELS, _PAIRS):
            db.execute(statement)
    return query(db, _result())


# Times are microseconds since 1970, days are days since 1970-01-01. A label sees an event from usable_at on.
def _events(*, known_by: bool) -> str:
    """Make the table of events, with each event's count and amount in every series; none is unreadable."""
    columns = []
    for each in SERIES:
        rows = ROWS[each]
        counts = f"({rows.where})"
        columns += [
            f"CASE WHEN {counts} THEN {rows.count} END AS {each}_count",
            f"CASE WHEN {counts} THEN {rows.amount} END AS {each}_amount",
            f"CASE WHEN {counts} THEN {rows.priced} END AS {each}_{PRICED}",
        ]
    usable = "greatest(occurred_at, received_at)" if known_by else "occurred_at"
    return f"""CREATE TEMP TABLE events AS
SELECT
    {LEAD} AS leaf, organization_id, epoch_us({usable}) AS usable_at, day, campaign_id AS campaign,
    event_type = '{CAMPAIGN_SENT}' AS is_sent, change_number, change_groups, {", ".join(columns)}
FROM (SELECT *, occurred_at::DATE - DATE '1970-01-01' AS day FROM read WHERE unreadable IS NULL)"""


_OTHERS = "DELETE FROM events WHERE NOT list_contains(?, organization_id)"


_LABELS = """CREATE OR REPLACE TEMP TABLE labels AS
SELECT n, lead, epoch_us(as_of) AS moment, as_of::DATE - DATE '1970-01-01' AS day FROM given"""
# A change of identity names leaves behind the root that they have from then on. Of the changes that a label
# sees and that name a leaf, the one with the highest number says where it is.
_MEMBERS = """CREATE TEMP TABLE members AS
WITH groups AS (
    SELECT change_number AS number, usable_at, unnest(from_json(change_groups, '[["VARCHAR"]]')) AS leaves
    FROM events WHERE change_number IS NOT NULL
)
SELECT number, usable_at, leaves[1] AS root, unnest(list_distinct(leaves)) AS leaf FROM groups"""
_PAIRS = """CREATE OR REPLACE TEMP TABLE pairs AS
WITH rooted AS (
    SELECT labels.n, labels.moment, labels.day,
        COALESCE(arg_max(members.root, members.number), labels.lead) AS root
    FROM labels LEFT JOIN members ON members.leaf = labels.lead AND members.usable_at <= labels.moment
    GROUP BY labels.n, labels.lead, labels.moment, labels.day
),
named AS (
    SELECT DISTINCT rooted.*, members.leaf FROM rooted JOIN members USING (root) WHERE usable_at <= moment
),
there AS (
    SELECT n, named.leaf FROM named JOIN members AS its ON its.leaf = named.leaf AND its.usable_at <= moment
    GROUP BY n, named.leaf, named.root HAVING arg_max(its.root, its.number) = named.root
)
SELECT n, COALESCE(there.leaf, rooted.root) AS leaf, moment, day FROM rooted LEFT JOIN there USING (n)"""


def _result() -> str:
    """Sum up the events of each label's lead in one pass, and compute the features from the sums.

    The query lists sums that no feature uses; DuckDB does not compute those.
    """
    columns = ", ".join(
        f"CASE WHEN series.n IS NOT NULL THEN {_column(each)} END AS {column_of(each)}" for each in FEATURES
    )
    parts = ", ".join(part for each in SERIES for part in _parts(each))
    names = (f"{each}_{name}" for each in SERIES for name in ("count", "amount", PRICED))
    sums = ", ".join(f"SUM({each}) AS {each}" for each in names)
    return f"""WITH dates AS (
        SELECT pairs.n, pairs.day AS today, events.day, {sums} FROM pairs
        JOIN events ON events.leaf = pairs.leaf AND events.usable_at <= pairs.moment GROUP BY 1, 2, 3),
    series AS (SELECT n, {parts} FROM dates GROUP BY n),
    campaigns AS ({_campaigns()})
    SELECT {columns} FROM labels LEFT JOIN series ON series.n = labels.n
    LEFT JOIN campaigns ON campaigns.n = labels.n ORDER BY labels.n"""


def _parts(input_: Input) -> Iterator[str]:
    yield f"MIN(day) FILTER ({input_}_count > 0) AS {input_}_first_day"
    yield f"MAX(day) FILTER ({input_}_count > 0) AS {input_}_last_day"
    yield f"SUM({input_}_{PRICED}) AS {input_}_{PRICED}"
    for window in (None, *windows_of(input_)):
        inside = f" FILTER (day > today - {window})" if window else ""
        yield f"SUM({input_}_count){inside} AS {input_}_{count_part(window)}"
        yield f"SUM({input_}_amount){inside} AS {input_}_{amount_part(window)}"


def _campaigns() -> str:
    """Count the campaigns that a label's lead was sent in the window and never reacted to."""
    (feature,), (window,) = features_of(Input.CAMPAIGNS), windows_of(Input.CAMPAIGNS)
    return f"""SELECT n, COUNT(*) AS {feature.name} FROM (
        SELECT pairs.n, ANY_VALUE(pairs.day) AS today, MAX(events.day) FILTER (is_sent) AS sent
        FROM pairs JOIN events ON events.leaf = pairs.leaf AND events.usable_at <= pairs.moment
        WHERE events.campaign IS NOT NULL GROUP BY pairs.n, events.campaign HAVING BOOL_AND(is_sent)
    ) AS unanswered WHERE sent > today - {window} AND sent <= today - {CAMPAIGN_GRACE_DAYS} GROUP BY n"""


def _column(feature: Feature) -> str:
    if feature.input is Input.CAMPAIGNS:
        return f"COALESCE({feature.input}.{feature.name}, 0)"
    return value_sql(feature, "labels.day", DUCKDB_DIVISION, f"series.{feature.input}_")
