"""The SQL of the warehouse's feature models, made from the declaration in rules/leads/features.py.

`python -m analytics.generated_models` stores it in sql/models/marts. Here are three models, in this order:

- lead_features_live has the features as the app shows them. It reads the states that leads' items bring into
  the lake (rules/leads/lake_entities.py).
- lead_features_recomputed computes the same features from the lake's events.
- lead_quality compares the two.

The first two go the same way for each input, such as purchases: CTEs end in one that has the input's name,
with one row a lead. Its columns are the parts of the input's features (series_parts.py).
"""

from analytics.leads.series_parts import (
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
from rules.leads.features import FEATURES, Aggregate, Feature, Input, Unit
from rules.leads.lake_entities import as_of_column, column_of, state_column
from rules.leads.lead_events import CAMPAIGN_SENT, CAMPAIGN_TYPES
from rules.leads.series import SERIES_INPUTS

# ruff: noqa: S608 (what the statements are made of is our own declaration)

GRACE_DAYS = "{campaign_grace_days}"  # stands for the setting (analytics/warehouse/models.py)
INPUT_JOINS = "\n".join(f"LEFT JOIN {name} ON {name}.lead_id = leads.lead_id" for name in Input)


def _value(feature: Feature, moment: str) -> str:
    """Return a feature as an expression over its input's CTE. moment: as of which it is computed."""
    if feature.aggregate is Aggregate.IGNORED:
        value = f"COALESCE({feature.input}.{feature.name}, 0)"  # a lead without ignored campaigns has no row
    else:
        value = value_sql(feature, f"CAST({moment} AS DATE)", REDSHIFT_DIVISION, f"{feature.input}.")
    return value if feature.unit is Unit.FLAG else f"CAST({value} AS BIGINT)"


def _window_sums(input_: Input) -> dict[str, str]:
    """Return the expression of each sum over a window, by the part's name. It is over the rows of dates."""
    return {
        part: f"CAST(SUM(CASE WHEN event_date > as_of_date - {window} THEN {column} ELSE 0 END) AS BIGINT)"
        for window in windows_of(input_)
        for part, column in ((count_part(window), "counted"), (amount_part(window), "amount"))
    }


def _named(expressions: dict[str, str]) -> str:
    """Return expressions as columns of a CTE, by name."""
    return ",\n        ".join(f"{expression} AS {name}" for name, expression in expressions.items())


def _campaigns_cte(source: str, sent_date: str, condition: str = "") -> str:
    """Return the last CTE of campaigns: how many of the window each lead was sent and did not react to.

    source: has a row for each lead and campaign. condition: what else holds for a campaign without reaction.
    """
    (feature,), (window,) = features_of(Input.CAMPAIGNS), windows_of(Input.CAMPAIGNS)
    return f"""campaigns AS (
    SELECT
        lead_id,
        COUNT(*) AS {feature.name}
    FROM {source}
    WHERE {condition}{sent_date} > as_of_date - {window}
        AND {sent_date} <= as_of_date - {GRACE_DAYS}
    GROUP BY lead_id
)"""


# ---- lead_features_live


def live_model() -> str:
    """Return the text of sql/models/leads/marts/lead_features_live.sql.

    It is what a reader sees at the night's instant.

    The model folds the state of each lead's item, as the app does at each reading. If an item's state is of
    another declaration, its stored values are taken.
    """
    ctes = ",\n".join([_NUMBERS, _live_leads(), *map(_state_ctes, Input)])
    as_of = ",\n    ".join(f"leads.{as_of_column(name)}" for name in Input)
    columns = ",\n    ".join(map(_live_column, FEATURES))
    return f"""-- Each lead's live features at the night's instant: the newest time of leads in the lake.
-- Generated from rules/leads/features.py by `make models`.
-- A state is text: its totals, then an entry for each date that a window may need, with spaces between them.
WITH {ctes}
SELECT
    leads.lead_id AS lead_organization_id,
    leads.version,
    leads.computed_at,
    leads.active_on,
    leads.seen_at AS as_of,
    {as_of},
    {columns}
FROM leads
{INPUT_JOINS}
"""


_NUMBERS = """digits AS (
    SELECT 0 AS digit UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
    UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9
),
numbers AS (
    SELECT 1 + ones.digit + 10 * tens.digit + 100 * hundreds.digit + 1000 * thousands.digit AS n
    FROM digits AS ones
    CROSS JOIN digits AS tens
    CROSS JOIN digits AS hundreds
    CROSS JOIN digits AS thousands
)"""


def _live_leads() -> str:
    """Return the CTEs that end in one row a lead: its states and stored values, and the night's instant.

    If features were computed as of an earlier instant, the night's instant takes its place.
    """
    moments = ",\n        ".join(
        f"CASE WHEN live.{name} > newest.seen_at THEN live.{name} WHEN live.{name} IS NOT NULL"
        f" THEN newest.seen_at END AS {name}"
        for name in map(as_of_column, Input)
    )
    states = ",\n        ".join(f"live.{state_column(name)}" for name in Input)
    stored = ",\n        ".join(f"live.{name} AS stored_{name}" for name in map(column_of, FEATURES))
    return f"""newest AS (
    SELECT MAX(seen_at) AS seen_at
    FROM (
        SELECT MAX(received_at) AS seen_at FROM facts.lead_events
        UNION ALL SELECT MAX(changed_at) FROM staging.lead_features
    ) AS seen
),
leads AS (
    SELECT
        live.lead_organization_id AS lead_id,
        live.version,
        live.computed_at,
        live.active_on,
        newest.seen_at,
        {moments},
        {states},
        {stored}
    FROM staging.lead_features AS live
    CROSS JOIN newest
    WHERE live.merged_into IS NULL
)"""


def _state_ctes(input_: Input) -> str:
    """Return the CTEs of an input. They go from its states to their dates, and from these to a row a lead."""
    state, moment = state_column(input_), as_of_column(input_)
    words = f"""{input_}_words AS (
    SELECT
        lead_id,
        CAST({moment} AS DATE) AS as_of_date,
        {state} AS words,
        LENGTH({state}) - LENGTH(REPLACE({state}, ' ', '')) AS entries
    FROM leads
    WHERE {state} IS NOT NULL AND {moment} IS NOT NULL
)"""
    if input_ is Input.CAMPAIGNS:
        return ",\n".join([words, _dates_of_states(input_), _campaigns_cte("campaigns_dates", "event_date")])
    totals = {name: _total(number, name) for number, name in enumerate(_TOTALS, 1)}
    sums = _window_sums(input_)
    if not sums:
        return f"""{words},
{input_} AS (
    SELECT
        states.lead_id,
        {_named(totals)}
    FROM {input_}_words AS states
)"""
    summed_names = ",\n        ".join(f"sums.{name}" for name in sums)
    return f"""{words},
{_dates_of_states(input_)},
{input_}_sums AS (
    SELECT
        lead_id,
        {_named(sums)}
    FROM {input_}_dates
    GROUP BY lead_id
),
{input_} AS (
    SELECT
        states.lead_id,
        {_named(totals)},
        {summed_names}
    FROM {input_}_words AS states
    LEFT JOIN {input_}_sums AS sums ON sums.lead_id = states.lead_id
)"""


_TOTALS = ("count_all", "amount_all", PRICED, "first_day", "last_day")  # in the order of a state's first word


def _total(number: int, name: str) -> str:
    total = f"SPLIT_PART(SPLIT_PART(states.words, ' ', 1), ':', {number})"
    return f"CAST(NULLIF({total}, '') AS {'DATE' if name.endswith('day') else 'BIGINT'})"


def _dates_of_states(input_: Input) -> str:
    """Return the CTEs that end in a row for each date of a state.

    Leads are joined with the numbers of their entries by how many entries they have. Joined by less-than,
    each lead would be compared with every number.
    """
    numbers = {"counted": 2, "amount": 3} if input_ in SERIES_INPUTS else {}
    sum_columns = "".join(
        f",\n        CAST(SPLIT_PART(entry, ':', {number}) AS BIGINT) AS {name}"
        for name, number in numbers.items()
    )
    return f"""{input_}_places AS (
    SELECT ends.entries, numbers.n
    FROM (SELECT DISTINCT entries FROM {input_}_words) AS ends
    INNER JOIN numbers ON numbers.n <= ends.entries
),
{input_}_entries AS (
    SELECT states.lead_id, states.as_of_date, SPLIT_PART(states.words, ' ', places.n + 1) AS entry
    FROM {input_}_words AS states
    INNER JOIN {input_}_places AS places ON places.entries = states.entries
),
{input_}_dates AS (
    SELECT
        lead_id,
        as_of_date,
        CAST(SPLIT_PART(entry, ':', 1) AS DATE) AS event_date{sum_columns}
    FROM {input_}_entries
)"""


def _live_column(feature: Feature) -> str:
    """Return a feature's column: folded from the state, or else the stored value."""
    name, moment = column_of(feature), f"leads.{as_of_column(feature.input)}"
    has_no_state = f"leads.{state_column(feature.input)} IS NULL"
    value = f"CASE WHEN {has_no_state} THEN leads.stored_{name} ELSE {_value(feature, moment)} END"
    return f"CASE WHEN {moment} IS NOT NULL THEN {value} END AS {name}"


# ---- lead_features_recomputed


def recomputed_model() -> str:
    """Return the text of sql/models/leads/marts/lead_features_recomputed.sql."""
    as_of_columns = ",\n        ".join(map(as_of_column, Input))
    ctes = ",\n".join([*map(_series_ctes, SERIES), _sent_campaigns_ctes()])
    columns = ",\n    ".join(map(_recomputed_column, FEATURES))
    return f"""-- The features of each lead, computed from its events for the instants of lead_features_live.
-- Generated from rules/leads/features.py by `make models`.
-- Where the live table has not computed an input of a lead yet, the input's features are NULL here too.
WITH leads AS (
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
{INPUT_JOINS}
"""


def _series_ctes(input_: Input) -> str:
    """Return the CTEs of a series. They go from its events to its dates, and from these to a row a lead."""
    rows, as_of = ROWS[input_], f"leads.{as_of_column(input_)}"
    parts = {
        "first_day": "MIN(CASE WHEN counted > 0 THEN event_date END)",
        "last_day": "MAX(CASE WHEN counted > 0 THEN event_date END)",
        PRICED: f"CAST(SUM({PRICED}) AS BIGINT)",
        count_part(None): "CAST(SUM(counted) AS BIGINT)",
        amount_part(None): "CAST(SUM(amount) AS BIGINT)",
        **_window_sums(input_),
    }
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
        {_named(parts)}
    FROM {input_}_dates
    GROUP BY lead_id
)"""


def _sent_campaigns_ctes() -> str:
    """Return the CTEs from the events of campaigns to how many of these each lead did not react to."""
    as_of = f"leads.{as_of_column(Input.CAMPAIGNS)}"
    campaigns = _campaigns_cte("contacts", "sent_date", "reactions = 0\n        AND ")
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
{campaigns}"""


def _recomputed_column(feature: Feature) -> str:
    """Return a feature's column. It is NULL if the live table has not computed the input."""
    as_of = f"leads.{as_of_column(feature.input)}"
    return f"CASE WHEN {as_of} IS NOT NULL THEN {_value(feature, as_of)} END AS {column_of(feature)}"


# ---- lead_quality


def quality_model() -> str:
    """Return the text of sql/models/leads/marts/lead_quality.sql."""
    count = "\n        + ".join(_if_different(feature, "1", "0") for feature in FEATURES)
    names = "\n        || ".join(_if_different(feature, f"'{feature.name} '", "''") for feature in FEATURES)
    return f"""-- Compares live features at the night's instant with those recomputed from the lake's events.
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
        {count}
        AS BIGINT
    ) AS different_features,
    TRIM(
        {names}
    ) AS different
FROM marts.lead_features_live AS live
INNER JOIN marts.lead_features_recomputed AS recomputed
    ON recomputed.lead_organization_id = live.lead_organization_id
CROSS JOIN newest
LEFT JOIN arrivals ON arrivals.root_id = live.lead_organization_id
"""


def _if_different(feature: Feature, then: str, otherwise: str) -> str:
    """Return the expression that is `then` if a feature's two values differ, and `otherwise` if not."""
    column = column_of(feature)
    are_equal = f"live.{column} = recomputed.{column}"
    are_null = f"(live.{column} IS NULL AND recomputed.{column} IS NULL)"
    return f"CASE WHEN {are_equal} OR {are_null} THEN {otherwise} ELSE {then} END"


GENERATED = {  # by the file's path in sql/models
    f"leads/marts/{name}.sql": text
    for name, text in (
        ("lead_features_live", live_model),
        ("lead_features_recomputed", recomputed_model),
        ("lead_quality", quality_model),
    )
}
