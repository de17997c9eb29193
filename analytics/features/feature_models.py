"""The SQL of the warehouse's feature models, made from the declaration in rules.leads.features.

- lead_features_live has the features that leads' items bring into the lake (live_sql.py writes it).
- lead_features_recomputed has the features that follow from the lake's events.
- lead_quality compares the two.
"""

from collections.abc import Iterator

from analytics.features.live_sql import live_model
from analytics.features.series_parts import (
    PRICED,
    REDSHIFT_DIVISION,
    ROWS,
    SERIES,
    amount_part,
    count_part,
    features_of,
    sql_list,
    value_sql,
    windows_of,
)
from analytics.warehouse.models import GRACE_DAYS
from rules.lake.lead_entities import as_of_column, column_of
from rules.leads.features import FEATURES, Aggregate, Feature, Input, Unit
from rules.leads.lead_events import CAMPAIGN_SENT, CAMPAIGN_TYPES

_QUALITY = """-- Compares live features at the night's instant with those recomputed from the lake's events.
-- Generated from rules/leads/features.py by `make models`.
-- Events and features reach the lake by two streams, and one stream may be ahead of the other. So a lead is
-- not settled if any of its events was received in the two hours before the newest event in the lake.
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
        {different_count}
        AS BIGINT
    ) AS different_features,
    TRIM(
        {different_names}
    ) AS different
FROM marts.lead_features_live AS live
INNER JOIN marts.lead_features_recomputed AS recomputed
    ON recomputed.lead_organization_id = live.lead_organization_id
CROSS JOIN newest
LEFT JOIN arrivals ON arrivals.root_id = live.lead_organization_id
"""
_HEAD = """-- The features of each lead, computed from its events for the instants of lead_features_live.
-- Generated from rules/leads/features.py by `make models`.
-- Where the live table has not computed an input of a lead yet, the input's features are NULL here too.
"""


def quality_model() -> str:
    """Return the text of sql/models/marts/lead_quality.sql."""
    ones = (_if_different(feature, "1", "0") for feature in FEATURES)
    names = (_if_different(feature, f"'{feature.name} '", "''") for feature in FEATURES)
    return _QUALITY.format(
        different_count="\n        + ".join(ones), different_names="\n        || ".join(names)
    )


def _if_different(feature: Feature, then: str, otherwise: str) -> str:
    """Return the expression that is `then` if a feature's two values differ, and `otherwise` if not."""
    column = column_of(feature)
    are_equal = f"live.{column} = recomputed.{column}"
    are_null = f"(live.{column} IS NULL AND recomputed.{column} IS NULL)"
    return f"CASE WHEN {are_equal} OR {are_null} THEN {otherwise} ELSE {then} END"


def recomputed_model() -> str:
    """Return the text of sql/models/marts/lead_features_recomputed.sql."""
    as_of_columns = ",\n        ".join(map(as_of_column, Input))
    ctes = ",\n".join([*map(_series_ctes, SERIES), _campaign_ctes()])
    columns = ",\n    ".join(map(_feature_column, FEATURES))
    # The last CTE of each input has the input's name, and one row a lead.
    joins = "\n".join(f"LEFT JOIN {name} ON {name}.lead_id = leads.lead_id" for name in Input)
    return f"""{_HEAD}WITH leads AS (
    SELECT
        lead_organization_id AS lead_id,
        version,
        {as_of_columns}
    FROM marts.lead_features_live
),
{ctes}
SELECT
    leads.lead_id AS lead_organization_id,
    leads.version,
    {columns}
FROM leads
{joins}
"""  # noqa: S608 (our own declaration)


def _series_ctes(input_: Input) -> str:
    """Return the CTEs of a series. They go from its events to its dates, and from these to a row a lead.

    The last one has the input's name. Its columns are the parts of the input's features (series_parts.py).
    """
    rows, as_of = ROWS[input_], f"leads.{as_of_column(input_)}"
    parts = ",\n        ".join(f"{sql} AS {name}" for name, sql in _summed_parts(input_))
    return f"""{input_}_rows AS (
    SELECT
        lead_organization_id,
        occurred_at,
        event_date,
        {rows.count} AS counted,
        {rows.priced} AS {PRICED},
        {rows.amount} AS amount
    FROM facts.lead_events
    WHERE {rows.where}
),
{input_}_dates AS (
    SELECT
        leads.lead_id,
        CAST({as_of} AS DATE) AS as_of_date,
        found.event_date,
        SUM(found.counted) AS counted,
        SUM(found.{PRICED}) AS {PRICED},
        SUM(found.amount) AS amount
    FROM leads
    INNER JOIN dimensions.leads AS leaves ON leaves.root_id = leads.lead_id
    INNER JOIN {input_}_rows AS found ON found.lead_organization_id = leaves.lead_organization_id
    WHERE found.occurred_at <= {as_of}
    GROUP BY leads.lead_id, CAST({as_of} AS DATE), found.event_date
),
{input_} AS (
    SELECT
        lead_id,
        {parts}
    FROM {input_}_dates
    GROUP BY lead_id
)"""  # noqa: S608


def _summed_parts(input_: Input) -> Iterator[tuple[str, str]]:
    """Yield the name of each part of an input's features, and its expression over the rows of dates."""
    yield "first_day", "MIN(CASE WHEN counted > 0 THEN event_date END)"
    yield "last_day", "MAX(CASE WHEN counted > 0 THEN event_date END)"
    yield PRICED, f"CAST(SUM({PRICED}) AS BIGINT)"
    for window in (None, *windows_of(input_)):
        inside = f"event_date > as_of_date - {window}" if window else ""
        for name, column in ((count_part(window), "counted"), (amount_part(window), "amount")):
            summed = f"CASE WHEN {inside} THEN {column} ELSE 0 END" if inside else column
            yield name, f"CAST(SUM({summed}) AS BIGINT)"


def _feature_column(feature: Feature) -> str:
    """Return a feature's column of the model. It is NULL if the live table has not computed the input."""
    as_of = f"leads.{as_of_column(feature.input)}"
    if feature.aggregate is Aggregate.IGNORED:
        value = f"COALESCE({feature.input}.{feature.name}, 0)"  # a lead without ignored campaigns has no row
    else:
        value = value_sql(feature, f"CAST({as_of} AS DATE)", REDSHIFT_DIVISION, f"{feature.input}.")
    if feature.unit is not Unit.FLAG:
        value = f"CAST({value} AS BIGINT)"
    return f"CASE WHEN {as_of} IS NOT NULL THEN {value} END AS {column_of(feature)}"


def _campaign_ctes() -> str:
    """Return the CTEs that end in one row a lead: how many campaigns the lead has not reacted to."""
    as_of = f"leads.{as_of_column(Input.CAMPAIGNS)}"
    (window,) = windows_of(Input.CAMPAIGNS)
    (feature,) = features_of(Input.CAMPAIGNS)
    return f"""contacts AS (
    SELECT
        leads.lead_id,
        found.campaign_id,
        CAST({as_of} AS DATE) AS as_of_date,
        MAX(CASE WHEN found.event_type = '{CAMPAIGN_SENT}' THEN found.event_date END) AS sent_date,
        SUM(CASE WHEN found.event_type = '{CAMPAIGN_SENT}' THEN 0 ELSE 1 END) AS reactions
    FROM leads
    INNER JOIN dimensions.leads AS leaves ON leaves.root_id = leads.lead_id
    INNER JOIN facts.lead_events AS found ON found.lead_organization_id = leaves.lead_organization_id
    WHERE found.event_type IN ({sql_list(CAMPAIGN_TYPES)})
        AND found.campaign_id IS NOT NULL
        AND found.occurred_at <= {as_of}
    GROUP BY leads.lead_id, found.campaign_id, CAST({as_of} AS DATE)
),
campaigns AS (
    SELECT
        lead_id,
        COUNT(*) AS {feature.name}
    FROM contacts
    WHERE reactions = 0
        AND sent_date > as_of_date - {window}
        AND sent_date <= as_of_date - {GRACE_DAYS}
    GROUP BY lead_id
)"""  # noqa: S608


GENERATED = {
    "lead_features_live": live_model,
    "lead_features_recomputed": recomputed_model,
    "lead_quality": quality_model,
}
