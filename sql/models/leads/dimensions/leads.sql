-- Every lead that an event or a feature row names. Events stay with the leaf that they came for. The newest feature
-- row of an absorbed leaf names its root.
WITH happened AS (
    SELECT
        lead_organization_id,
        MAX(organization_id) AS organization_id,
        MIN(occurred_at) AS first_event_at,
        MAX(occurred_at) AS last_event_at,
        COUNT(*) AS events
    FROM facts.lead_events
    GROUP BY lead_organization_id
),
everybody AS (
    SELECT lead_organization_id FROM happened
    UNION SELECT lead_organization_id FROM staging.lead_features
    UNION SELECT merged_into FROM staging.lead_features WHERE merged_into IS NOT NULL
)
SELECT
    everybody.lead_organization_id,
    COALESCE(live.merged_into, everybody.lead_organization_id) AS root_id,
    CASE WHEN live.merged_into IS NULL THEN TRUE ELSE FALSE END AS is_root,
    happened.organization_id,
    happened.first_event_at,
    happened.last_event_at,
    COALESCE(happened.events, 0) AS events,
    live.active_on,
    CASE
        WHEN live.merged_into IS NULL
        THEN COUNT(*) OVER (PARTITION BY COALESCE(live.merged_into, everybody.lead_organization_id))
    END AS leaf_count
FROM everybody
LEFT JOIN happened ON happened.lead_organization_id = everybody.lead_organization_id
LEFT JOIN staging.lead_features AS live ON live.lead_organization_id = everybody.lead_organization_id
