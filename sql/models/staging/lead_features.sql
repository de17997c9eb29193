-- Generated from rules/lake by `make models`: one column for each field of lead_features.
-- The newest version of each lead's features. An absorbed leaf has no features, only merged_into.
SELECT
    lead_organization_id,
    version,
    changed_at,
    computed_at,
    merged_into,
    leaves,
    active_on,
    topology,
    purchases_as_of,
    sentiment_as_of,
    activity_as_of,
    campaigns_as_of,
    monetary_total_minor,
    monetary_30d_minor,
    monetary_90d_minor,
    monetary_365d_minor,
    frequency_purchases_30d,
    frequency_purchases_90d,
    frequency_purchases_365d,
    average_order_value_minor,
    days_since_last_purchase,
    tenure_days,
    has_purchased,
    recency_days,
    sentiment_avg_30d_milli,
    campaign_ignored,
    purchases_state,
    sentiment_state,
    activity_state,
    campaigns_state,
    load_number
FROM (
    SELECT
        v.*,
        ROW_NUMBER() OVER (PARTITION BY v.lead_organization_id ORDER BY v.version DESC) AS place
    FROM lake.lead_features AS v
) AS versions
WHERE place = 1
