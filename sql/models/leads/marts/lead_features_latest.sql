-- Each lead's features in numbers for people: amounts with two decimals, sentiment with three. Days and windows are
-- as of the night's instant, however long ago anything happened to the lead.
SELECT
    live.lead_organization_id,
    leads.organization_id,
    live.version,
    live.computed_at,
    live.active_on,
    live.as_of,
    CAST(CAST(live.monetary_total_minor AS DECIMAL(22, 2)) / 100 AS DECIMAL(22, 2)) AS monetary_total,
    CAST(CAST(live.monetary_30d_minor AS DECIMAL(22, 2)) / 100 AS DECIMAL(22, 2)) AS monetary_30d,
    CAST(CAST(live.monetary_90d_minor AS DECIMAL(22, 2)) / 100 AS DECIMAL(22, 2)) AS monetary_90d,
    CAST(CAST(live.monetary_365d_minor AS DECIMAL(22, 2)) / 100 AS DECIMAL(22, 2)) AS monetary_365d,
    live.frequency_purchases_30d,
    live.frequency_purchases_90d,
    live.frequency_purchases_365d,
    CAST(CAST(live.average_order_value_minor AS DECIMAL(22, 2)) / 100 AS DECIMAL(22, 2)) AS average_order_value,
    live.days_since_last_purchase,
    live.tenure_days,
    live.has_purchased,
    live.recency_days,
    CAST(CAST(live.sentiment_avg_30d_milli AS DECIMAL(22, 3)) / 1000 AS DECIMAL(22, 3)) AS sentiment_avg_30d,
    live.campaign_ignored
FROM marts.lead_features_live AS live
INNER JOIN dimensions.leads AS leads ON leads.lead_organization_id = live.lead_organization_id
WHERE leads.is_root AND live.computed_at IS NOT NULL
