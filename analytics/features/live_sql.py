"""The SQL of the warehouse's model of live features: the values that a reader sees at the night's instant.

The model folds the state that each lead's item brings into the lake (rules/lake/lead_entities.py), as the app
does at each reading. If an item's state is of another declaration, its stored values are taken.
"""

from collections.abc import Iterator

from analytics.features.series_parts import (
    PRICED,
    REDSHIFT_DIVISION,
    amount_part,
    count_part,
    features_of,
    value_sql,
    windows_of,
)
from analytics.warehouse.models import GRACE_DAYS
from rules.lake.lead_entities import as_of_column, column_of, state_column
from rules.leads.features import FEATURES, Aggregate, Feature, Input, Unit
from rules.leads.series import SERIES_INPUTS

_HEAD = """-- Each lead's live features at the night's instant: the newest time of leads in the lake.
-- Generated from rules/leads/features.py by `make models`.
-- A state is text: its totals, then an entry for each date that a window may need, with spaces between them.
"""
_TOTALS = ("count_all", "amount_all", PRICED, "first_day", "last_day")


def live_model() -> str:
    """Return the text of sql/models/marts/lead_features_live.sql."""
    inputs = ",\n".join(map(_input, Input))
    columns = ",\n    ".join(_column(feature) for feature in FEATURES)
    joins = "\n".join(f"LEFT JOIN {name} ON {name}.lead_id = leads.lead_id" for name in Input)
    as_of = ",\n    ".join(f"leads.{as_of_column(name)}" for name in Input)
    return f"""{_HEAD}WITH {_NUMBERS},
{_leads()},
{inputs}
SELECT
    leads.lead_id AS lead_organization_id,
    leads.version,
    leads.computed_at,
    leads.active_on,
    leads.seen_at AS as_of,
    {as_of},
    {columns}
FROM leads
{joins}
"""  # noqa: S608 (our own declaration)


def _leads() -> str:
    """Return the CTEs that end in one row a lead: its states and stored values, and the night's instant.

    If features were computed as of an earlier instant, the night's instant takes its place.
    """
    moments = ",\n        ".join(
        f"CASE WHEN live.{name} > newest.seen_at THEN live.{name} WHEN live.{name} IS NOT NULL"
        f" THEN newest.seen_at END AS {name}"
        for name in map(as_of_column, Input)
    )
    states = ",\n        ".join(f"live.{state_column(name)}" for name in Input)
    stored = ",\n        ".join(
        f"live.{column_of(feature)} AS {_stored_column(feature)}" for feature in FEATURES
    )
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
)"""  # noqa: S608 (our own declaration)


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


def _input(input_: Input) -> str:
    """Return the CTEs that end in one row a lead, named as the input, with the parts of its features."""
    state, moment = state_column(input_), as_of_column(input_)
    words = f"""{input_}_words AS (
    SELECT
        lead_id,
        CAST({moment} AS DATE) AS as_of_date,
        {state} AS words,
        LENGTH({state}) - LENGTH(REPLACE({state}, ' ', '')) AS entries
    FROM leads
    WHERE {state} IS NOT NULL AND {moment} IS NOT NULL
)"""  # noqa: S608
    if input_ is Input.CAMPAIGNS:
        return f"{words},\n{_entries(input_)},\n{_campaigns()}"
    if windows_of(input_):
        return f"{words},\n{_entries(input_)},\n{_sums(input_)},\n{_series(input_)}"
    return f"{words},\n{_series(input_)}"


def _sums(input_: Input) -> str:
    """Return the CTE with the sums of counts and amounts over each window."""
    summed = ",\n        ".join(f"CAST(SUM({sql}) AS BIGINT) AS {name}" for name, sql in _windows(input_))
    return f"""{input_}_sums AS (
    SELECT
        lead_id,
        {summed}
    FROM {input_}_dates
    GROUP BY lead_id
)"""  # noqa: S608


def _series(input_: Input) -> str:
    """Return the CTE with the totals of a state, and the sums over windows if there are any."""
    totals = [_total(number, name) for number, name in enumerate(_TOTALS, 1)]
    names = [f"sums.{name}" for name, _ in _windows(input_)]
    joined = f"\n    LEFT JOIN {input_}_sums AS sums ON sums.lead_id = states.lead_id" if names else ""
    columns = ",\n        ".join((*totals, *names))
    return f"""{input_} AS (
    SELECT
        states.lead_id,
        {columns}
    FROM {input_}_words AS states{joined}
)"""  # noqa: S608


def _total(number: int, name: str) -> str:
    total = f"SPLIT_PART(SPLIT_PART(states.words, ' ', 1), ':', {number})"
    return f"CAST(NULLIF({total}, '') AS {'DATE' if name.endswith('day') else 'BIGINT'}) AS {name}"


def _windows(input_: Input) -> Iterator[tuple[str, str]]:
    """Yield the name and the summed expression of each part over a window."""
    for window in windows_of(input_):
        for name, column in ((count_part(window), "counted"), (amount_part(window), "amount")):
            yield name, f"CASE WHEN event_date > as_of_date - {window} THEN {column} ELSE 0 END"


def _entries(input_: Input) -> str:
    """Return the CTEs that end in a row for each date of a state.

    Leads are joined with the numbers of their entries by how many entries they have. Joined by less-than,
    each lead would be compared with every number.
    """
    sums = {"counted": 2, "amount": 3} if input_ in SERIES_INPUTS else {}
    sum_columns = "".join(
        f",\n        CAST(SPLIT_PART(entry, ':', {number}) AS BIGINT) AS {name}"
        for name, number in sums.items()
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
)"""  # noqa: S608


def _campaigns() -> str:
    (feature,), (window,) = features_of(Input.CAMPAIGNS), windows_of(Input.CAMPAIGNS)
    return f"""campaigns AS (
    SELECT
        lead_id,
        COUNT(*) AS {feature.name}
    FROM campaigns_dates
    WHERE event_date > as_of_date - {window}
        AND event_date <= as_of_date - {GRACE_DAYS}
    GROUP BY lead_id
)"""  # noqa: S608


def _stored_column(feature: Feature) -> str:
    return f"stored_{column_of(feature)}"


def _column(feature: Feature) -> str:
    moment, state = f"leads.{as_of_column(feature.input)}", f"leads.{state_column(feature.input)}"
    if feature.aggregate is Aggregate.IGNORED:
        folded = f"COALESCE({feature.input}.{feature.name}, 0)"
    else:
        folded = value_sql(feature, f"CAST({moment} AS DATE)", REDSHIFT_DIVISION, f"{feature.input}.")
    if feature.unit is not Unit.FLAG:
        folded = f"CAST({folded} AS BIGINT)"
    value = f"CASE WHEN {state} IS NULL THEN leads.{_stored_column(feature)} ELSE {folded} END"
    return f"CASE WHEN {moment} IS NOT NULL THEN {value} END AS {column_of(feature)}"
