"""The SQL of the warehouse's feature models, made from the declaration in rules.leads.features.

lead_features_recomputed has the features that follow from the lake's events, lead_quality compares them with
the live ones. live_sql.py has the model of live features.
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
        {differ}
        AS BIGINT
    ) AS different_features,
    TRIM(
        {named}
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
    """Return sql/models/marts/lead_quality.sql: live features against the recomputed ones."""
    differ = "\n        + ".join(_differs(column_of(feature), "1", "0") for feature in FEATURES)
    named = "\n        || ".join(
        _differs(column_of(feature), f"'{feature.name} '", "''") for feature in FEATURES
    )
    return _QUALITY.format(differ=differ, named=named)


def _differs(column: str, then: str, otherwise: str) -> str:
    """Return the expression that is `then` if a feature differs, and `otherwise` if not."""
    both = f"live.{column} = recomputed.{column}"
    none = f"(live.{column} IS NULL AND recomputed.{column} IS NULL)"
    return f"CASE WHEN {both} OR {none} THEN {otherwise} ELSE {then} END"


def recomputed_model() -> str:
    """Return the text of sql/models/marts/lead_features_recomputed.sql."""
    moments = ",\n        ".join(map(as_of_column, Input))
    inputs = ",\n".join([*map(_series, SERIES), _CAMPAIGNS])
    columns = ",\n    ".join(_model_column(feature) for feature in FEATURES)
    joins = "\n".join(f"LEFT JOIN {name} ON {name}.lead_id = leads.lead_id" for name in Input)
    return f"""{_HEAD}WITH leads AS (
    SELECT
        lead_organization_id AS lead_id,
        version,
        {moments}
    FROM marts.lead_features_live
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
    """Return the CTEs that end in one row a lead, named as the input, with the parts of its features."""
    rows, moment = ROWS[input_], f"leads.{as_of_column(input_)}"
    parts = ",\n        ".join(f"{sql} AS {name}" for name, sql in _model_parts(input_))
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
        CAST({moment} AS DATE) AS as_of_date,
        found.event_date,
        SUM(found.counted) AS counted,
        SUM(found.{PRICED}) AS {PRICED},
        SUM(found.amount) AS amount
    FROM leads
    INNER JOIN dimensions.leads AS leaves ON leaves.root_id = leads.lead_id
    INNER JOIN {input_}_rows AS found ON found.lead_organization_id = leaves.lead_organization_id
    WHERE found.occurred_at <= {moment}
    GROUP BY leads.lead_id, CAST({moment} AS DATE), found.event_date
),
{input_} AS (
    SELECT
        lead_id,
        {parts}
    FROM {input_}_dates
    GROUP BY lead_id
)"""  # noqa: S608


def _model_parts(input_: Input) -> Iterator[tuple[str, str]]:
    """Yield the name and the expression of each part of an input's features."""
    yield "first_day", "MIN(CASE WHEN counted > 0 THEN event_date END)"
    yield "last_day", "MAX(CASE WHEN counted > 0 THEN event_date END)"
    yield PRICED, f"CAST(SUM({PRICED}) AS BIGINT)"
    for window in (None, *windows_of(input_)):
        inside = f"event_date > as_of_date - {window}" if window else ""
        for name, column in ((count_part(window), "counted"), (amount_part(window), "amount")):
            summed = f"CASE WHEN {inside} THEN {column} ELSE 0 END" if inside else column
            yield name, f"CAST(SUM({summed}) AS BIGINT)"


def _model_column(feature: Feature) -> str:
    moment, name = f"leads.{as_of_column(feature.input)}", column_of(feature)
    if feature.aggregate is Aggregate.IGNORED:
        value = f"COALESCE({feature.input}.{feature.name}, 0)"
    else:
        value = value_sql(feature, f"CAST({moment} AS DATE)", REDSHIFT_DIVISION, f"{feature.input}.")
    if feature.unit is not Unit.FLAG:
        value = f"CAST({value} AS BIGINT)"
    return f"CASE WHEN {moment} IS NOT NULL THEN {value} END AS {name}"


def _campaigns() -> str:
    """Return the CTEs that end in one row a lead: the campaigns that it has not reacted to."""
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
        AND sent_date <= as_of_date - {GRACE_DAYS}
    GROUP BY lead_id
)"""  # noqa: S608


_CAMPAIGNS = _campaigns()

GENERATED = {
    "lead_features_live": live_model,
    "lead_features_recomputed": recomputed_model,
    "lead_quality": quality_model,
}
