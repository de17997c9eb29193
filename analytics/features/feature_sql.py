"""Features as SQL, from one declaration (rules.leads.features): as of any instant, and in the warehouse.

Each input is a series of rows with a count and an amount. What a feature needs of it are *parts*: sums of
both over a window, and the first and last date that counts. `value` makes the feature of its parts. Both
engines read the same text, but for a division.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from rules.lake.lead_entities import as_of_column, column_of
from rules.leads.features import CAMPAIGN_GRACE_DAYS, FEATURES, Aggregate, Feature, Input, Unit
from rules.leads.lead_events import (
    ACTIVITY_TYPES,
    CAMPAIGN_SENT,
    CAMPAIGN_TYPES,
    ORDER_PLACED,
    PURCHASE_TYPES,
    SENTIMENT_TYPES,
)

SERIES = tuple(each for each in Input if each is not Input.CAMPAIGNS)
DUCKDB_DIVISION, REDSHIFT_DIVISION = "//", "/"
_DAYS_SINCE = (Aggregate.DAYS_SINCE_FIRST, Aggregate.DAYS_SINCE_LAST)


@dataclass(frozen=True, slots=True)
class SeriesRows:
    """Which events are rows of a series, and what each of them counts and amounts to."""

    where: str
    count: str
    amount: str


def sql_list(types: frozenset[str]) -> str:
    """Return event types as SQL lists them."""
    return ", ".join(f"'{each}'" for each in sorted(types))


ROWS = {
    Input.PURCHASES: SeriesRows(
        f"event_type IN ({sql_list(PURCHASE_TYPES)}) AND amount_minor IS NOT NULL",
        f"CASE WHEN event_type = '{ORDER_PLACED}' THEN 1 ELSE 0 END",
        f"CASE WHEN event_type = '{ORDER_PLACED}' THEN amount_minor ELSE -amount_minor END",
    ),
    Input.SENTIMENT: SeriesRows(
        f"event_type IN ({sql_list(SENTIMENT_TYPES)}) AND sentiment_milli IS NOT NULL", "1", "sentiment_milli"
    ),
    Input.ACTIVITY: SeriesRows(
        f"event_type IN ({sql_list(ACTIVITY_TYPES)}) AND unreadable IS NULL", "1", "0"
    ),
}


def windows_of(input_: Input) -> tuple[int, ...]:
    """Return the lengths in dates of the windows that an input's features look through, ascending."""
    return tuple(sorted({each.window_days for each in features_of(input_) if each.window_days is not None}))


def features_of(input_: Input) -> tuple[Feature, ...]:
    """Return an input's features; raises ValueError for one that no SQL is written for."""
    found = tuple(each for each in FEATURES if each.input is input_)
    for each in found:
        if each.aggregate in _DAYS_SINCE and each.window_days is not None:
            raise ValueError(f"{each.name}: days since the first or last are not counted in a window")
        if (each.aggregate is Aggregate.IGNORED) != (input_ is Input.CAMPAIGNS):
            raise ValueError(f"{each.name}: {each.aggregate} is not for {input_}")
    return found


def count_part(window_days: int | None) -> str:
    """Return the name of the count in a window."""
    return f"count_{window_days or 'all'}"


def amount_part(window_days: int | None) -> str:
    """Return the name of the sum of amounts in a window."""
    return f"amount_{window_days or 'all'}"


def value_sql(feature: Feature, day: str, division: str, table: str) -> str:
    """Return a series' feature as an expression over its parts, which are NULL where there is nothing.

    day: the expression for the date asked about, of the type that first_day and last_day have.
    table: what stands before the parts' names.
    """
    count, amount = table + count_part(feature.window_days), table + amount_part(feature.window_days)
    match feature.aggregate:
        case Aggregate.SUM:
            return f"COALESCE({amount}, 0)"
        case Aggregate.COUNT:
            return f"COALESCE({count}, 0)"
        case Aggregate.ANY:
            return f"COALESCE({count}, 0) > 0"
        case Aggregate.AVERAGE:
            return f"CASE WHEN {count} > 0 THEN {_rounded(amount, count, division)} END"
        case Aggregate.DAYS_SINCE_FIRST:
            return f"{day} - {table}first_day"
        case Aggregate.DAYS_SINCE_LAST:
            return f"{day} - {table}last_day"
    raise ValueError(f"{feature.name}: no expression for {feature.aggregate}")


def _rounded(total: str, count: str, division: str) -> str:
    """rules.leads.features.rounded: SQL's division cuts off towards 0, so what is left over goes first."""
    over, by = f"(2 * {total} + {count})", f"(2 * {count})"
    return f"({over} - MOD(MOD({over}, {by}) + {by}, {by})) {division} {by}"


# The warehouse's twin -----------------------------------------------------------------------------

_HEAD = """-- The features of each lead, computed from its events as of when the live table computed them.
-- Generated from rules/leads/features.py by `make models`.
-- An input that the live table has not computed for a lead yet has no features here either.
"""


def recomputed_model() -> str:
    """Return sql/models/marts/lead_features_recomputed.sql."""
    moments = ",\n        ".join(as_of_column(each) for each in Input)
    inputs = ",\n".join([*map(_series, SERIES), _CAMPAIGNS])
    columns = ",\n    ".join(_model_column(each) for each in FEATURES)
    joins = "\n".join(f"LEFT JOIN {each} ON {each}.lead_id = leads.lead_id" for each in Input)
    return f"""{_HEAD}WITH leads AS (
    SELECT
        lead_organization_id AS lead_id,
        version,
        {moments}
    FROM staging.lead_features
    WHERE merged_into IS NULL
),
{inputs}
SELECT
    leads.lead_id AS lead_organization_id,
    leads.version,
    {columns}
FROM leads
{joins}
"""  # noqa: S608 (our own declaration)


def _series(input_: Input) -> str:
    rows, moment = ROWS[input_], f"leads.{as_of_column(input_)}"
    parts = ",\n        ".join(f"{sql} AS {name}" for name, sql in _model_parts(input_, moment))
    return f"""{input_}_rows AS (
    SELECT
        lead_organization_id,
        occurred_at,
        event_date,
        {rows.count} AS counted,
        {rows.amount} AS amount
    FROM facts.lead_events
    WHERE {rows.where}
),
{input_} AS (
    SELECT
        leads.lead_id,
        {parts}
    FROM leads
    INNER JOIN dimensions.leads AS leaves ON leaves.root_id = leads.lead_id
    INNER JOIN {input_}_rows AS found ON found.lead_organization_id = leaves.lead_organization_id
    WHERE found.occurred_at <= {moment}
    GROUP BY leads.lead_id
)"""  # noqa: S608


def _model_parts(input_: Input, moment: str) -> Iterator[tuple[str, str]]:
    yield "first_day", "MIN(CASE WHEN found.counted = 1 THEN found.event_date END)"
    yield "last_day", "MAX(CASE WHEN found.counted = 1 THEN found.event_date END)"
    for window in (None, *windows_of(input_)):
        inside = f"found.event_date > CAST({moment} AS DATE) - {window}" if window else ""
        for name, column in ((count_part(window), "found.counted"), (amount_part(window), "found.amount")):
            summed = f"CASE WHEN {inside} THEN {column} ELSE 0 END" if inside else column
            yield name, f"CAST(SUM({summed}) AS BIGINT)"


def _model_column(feature: Feature) -> str:
    moment, name = f"leads.{as_of_column(feature.input)}", column_of(feature)
    if feature.aggregate is Aggregate.IGNORED:
        found = f"COALESCE({feature.input}.{feature.name}, 0)"
    else:
        found = value_sql(feature, f"CAST({moment} AS DATE)", REDSHIFT_DIVISION, f"{feature.input}.")
    if feature.unit is Unit.FLAG:
        return f"CASE WHEN {moment} IS NOT NULL THEN {found} END AS {name}"
    return f"CASE WHEN {moment} IS NOT NULL THEN CAST({found} AS BIGINT) END AS {name}"


def _campaigns() -> str:
    moment = f"leads.{as_of_column(Input.CAMPAIGNS)}"
    (window,) = windows_of(Input.CAMPAIGNS)
    (feature,) = features_of(Input.CAMPAIGNS)
    return f"""contacts AS (
    SELECT
        leads.lead_id,
        found.campaign_id,
        CAST({moment} AS DATE) AS as_of_date,
        MAX(CASE WHEN found.event_type = '{CAMPAIGN_SENT}' THEN found.event_date END) AS sent_date,
        SUM(CASE WHEN found.event_type = '{CAMPAIGN_SENT}' THEN 0 ELSE 1 END) AS reactions
    FROM leads
    INNER JOIN dimensions.leads AS leaves ON leaves.root_id = leads.lead_id
    INNER JOIN facts.lead_events AS found ON found.lead_organization_id = leaves.lead_organization_id
    WHERE found.event_type IN ({sql_list(CAMPAIGN_TYPES)})
        AND found.campaign_id IS NOT NULL
        AND found.occurred_at <= {moment}
    GROUP BY leads.lead_id, found.campaign_id, CAST({moment} AS DATE)
),
campaigns AS (
    SELECT
        lead_id,
        COUNT(*) AS {feature.name}
    FROM contacts
    WHERE reactions = 0
        AND sent_date > as_of_date - {window}
        AND sent_date <= as_of_date - {CAMPAIGN_GRACE_DAYS}
    GROUP BY lead_id
)"""  # noqa: S608


_CAMPAIGNS = _campaigns()


def quality_model() -> str:
    """Return sql/models/marts/lead_quality.sql: live features against the recomputed ones."""
    differ = "\n        + ".join(_differs(column_of(each), "1", "0") for each in FEATURES)
    named = "\n        || ".join(_differs(column_of(each), f"'{each.name} '", "''") for each in FEATURES)
    return f"""-- Live features against those recomputed from the lake's events for the same instants.
-- Generated from rules/leads/features.py by `make models`.
-- Events and features reach the lake
-- by streams of their own: a lead of whom something came in the last two hours that the lake knows of may be
-- ahead in one of them, and is not settled.
WITH newest AS (
    SELECT DATEADD(hour, -2, MAX(received_at)) AS settled_before FROM facts.lead_events
),
arrivals AS (
    SELECT
        leaves.root_id,
        MAX(found.received_at) AS received_at
    FROM dimensions.leads AS leaves
    INNER JOIN facts.lead_events AS found ON found.lead_organization_id = leaves.lead_organization_id
    GROUP BY leaves.root_id
)
SELECT
    live.lead_organization_id,
    live.version,
    CASE WHEN arrivals.received_at > newest.settled_before THEN FALSE ELSE TRUE END AS is_settled,
    CAST(
        {differ}
        AS BIGINT
    ) AS different_features,
    TRIM(
        {named}
    ) AS different
FROM staging.lead_features AS live
INNER JOIN marts.lead_features_recomputed AS recomputed
    ON recomputed.lead_organization_id = live.lead_organization_id
CROSS JOIN newest
LEFT JOIN arrivals ON arrivals.root_id = live.lead_organization_id
"""  # noqa: S608


def _differs(column: str, then: str, otherwise: str) -> str:
    both = f"live.{column} = recomputed.{column}"
    none = f"(live.{column} IS NULL AND recomputed.{column} IS NULL)"
    return f"CASE WHEN {both} OR {none} THEN {otherwise} ELSE {then} END"


GENERATED = {"lead_features_recomputed": recomputed_model, "lead_quality": quality_model}
