"""The warehouse's model that compares live features with the recomputed ones."""

from rules.lake.lead_entities import column_of
from rules.leads.features import FEATURES

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


def quality_model() -> str:
    """Return sql/models/marts/lead_quality.sql: live features against the recomputed ones."""
    differ = "\n        + ".join(_differs(column_of(each), "1", "0") for each in FEATURES)
    named = "\n        || ".join(_differs(column_of(each), f"'{each.name} '", "''") for each in FEATURES)
    return _QUALITY.format(differ=differ, named=named)


def _differs(column: str, then: str, otherwise: str) -> str:
    both = f"live.{column} = recomputed.{column}"
    none = f"(live.{column} IS NULL AND recomputed.{column} IS NULL)"
    return f"CASE WHEN {both} OR {none} THEN {otherwise} ELSE {then} END"
