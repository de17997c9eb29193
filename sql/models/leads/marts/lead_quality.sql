-- Compares live features at the night's instant with those recomputed from the lake's events.
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
        CASE WHEN live.monetary_total_minor = recomputed.monetary_total_minor OR (live.monetary_total_minor IS NULL AND recomputed.monetary_total_minor IS NULL) THEN 0 ELSE 1 END
        + CASE WHEN live.monetary_30d_minor = recomputed.monetary_30d_minor OR (live.monetary_30d_minor IS NULL AND recomputed.monetary_30d_minor IS NULL) THEN 0 ELSE 1 END
        + CASE WHEN live.monetary_90d_minor = recomputed.monetary_90d_minor OR (live.monetary_90d_minor IS NULL AND recomputed.monetary_90d_minor IS NULL) THEN 0 ELSE 1 END
        + CASE WHEN live.monetary_365d_minor = recomputed.monetary_365d_minor OR (live.monetary_365d_minor IS NULL AND recomputed.monetary_365d_minor IS NULL) THEN 0 ELSE 1 END
        + CASE WHEN live.frequency_purchases_30d = recomputed.frequency_purchases_30d OR (live.frequency_purchases_30d IS NULL AND recomputed.frequency_purchases_30d IS NULL) THEN 0 ELSE 1 END
        + CASE WHEN live.frequency_purchases_90d = recomputed.frequency_purchases_90d OR (live.frequency_purchases_90d IS NULL AND recomputed.frequency_purchases_90d IS NULL) THEN 0 ELSE 1 END
        + CASE WHEN live.frequency_purchases_365d = recomputed.frequency_purchases_365d OR (live.frequency_purchases_365d IS NULL AND recomputed.frequency_purchases_365d IS NULL) THEN 0 ELSE 1 END
        + CASE WHEN live.average_order_value_minor = recomputed.average_order_value_minor OR (live.average_order_value_minor IS NULL AND recomputed.average_order_value_minor IS NULL) THEN 0 ELSE 1 END
        + CASE WHEN live.days_since_last_purchase = recomputed.days_since_last_purchase OR (live.days_since_last_purchase IS NULL AND recomputed.days_since_last_purchase IS NULL) THEN 0 ELSE 1 END
        + CASE WHEN live.tenure_days = recomputed.tenure_days OR (live.tenure_days IS NULL AND recomputed.tenure_days IS NULL) THEN 0 ELSE 1 END
        + CASE WHEN live.has_purchased = recomputed.has_purchased OR (live.has_purchased IS NULL AND recomputed.has_purchased IS NULL) THEN 0 ELSE 1 END
        + CASE WHEN live.recency_days = recomputed.recency_days OR (live.recency_days IS NULL AND recomputed.recency_days IS NULL) THEN 0 ELSE 1 END
        + CASE WHEN live.sentiment_avg_30d_milli = recomputed.sentiment_avg_30d_milli OR (live.sentiment_avg_30d_milli IS NULL AND recomputed.sentiment_avg_30d_milli IS NULL) THEN 0 ELSE 1 END
        + CASE WHEN live.campaign_ignored = recomputed.campaign_ignored OR (live.campaign_ignored IS NULL AND recomputed.campaign_ignored IS NULL) THEN 0 ELSE 1 END
        AS BIGINT
    ) AS different_features,
    TRIM(
        CASE WHEN live.monetary_total_minor = recomputed.monetary_total_minor OR (live.monetary_total_minor IS NULL AND recomputed.monetary_total_minor IS NULL) THEN '' ELSE 'monetary_total ' END
        || CASE WHEN live.monetary_30d_minor = recomputed.monetary_30d_minor OR (live.monetary_30d_minor IS NULL AND recomputed.monetary_30d_minor IS NULL) THEN '' ELSE 'monetary_30d ' END
        || CASE WHEN live.monetary_90d_minor = recomputed.monetary_90d_minor OR (live.monetary_90d_minor IS NULL AND recomputed.monetary_90d_minor IS NULL) THEN '' ELSE 'monetary_90d ' END
        || CASE WHEN live.monetary_365d_minor = recomputed.monetary_365d_minor OR (live.monetary_365d_minor IS NULL AND recomputed.monetary_365d_minor IS NULL) THEN '' ELSE 'monetary_365d ' END
        || CASE WHEN live.frequency_purchases_30d = recomputed.frequency_purchases_30d OR (live.frequency_purchases_30d IS NULL AND recomputed.frequency_purchases_30d IS NULL) THEN '' ELSE 'frequency_purchases_30d ' END
        || CASE WHEN live.frequency_purchases_90d = recomputed.frequency_purchases_90d OR (live.frequency_purchases_90d IS NULL AND recomputed.frequency_purchases_90d IS NULL) THEN '' ELSE 'frequency_purchases_90d ' END
        || CASE WHEN live.frequency_purchases_365d = recomputed.frequency_purchases_365d OR (live.frequency_purchases_365d IS NULL AND recomputed.frequency_purchases_365d IS NULL) THEN '' ELSE 'frequency_purchases_365d ' END
        || CASE WHEN live.average_order_value_minor = recomputed.average_order_value_minor OR (live.average_order_value_minor IS NULL AND recomputed.average_order_value_minor IS NULL) THEN '' ELSE 'average_order_value ' END
        || CASE WHEN live.days_since_last_purchase = recomputed.days_since_last_purchase OR (live.days_since_last_purchase IS NULL AND recomputed.days_since_last_purchase IS NULL) THEN '' ELSE 'days_since_last_purchase ' END
        || CASE WHEN live.tenure_days = recomputed.tenure_days OR (live.tenure_days IS NULL AND recomputed.tenure_days IS NULL) THEN '' ELSE 'tenure_days ' END
        || CASE WHEN live.has_purchased = recomputed.has_purchased OR (live.has_purchased IS NULL AND recomputed.has_purchased IS NULL) THEN '' ELSE 'has_purchased ' END
        || CASE WHEN live.recency_days = recomputed.recency_days OR (live.recency_days IS NULL AND recomputed.recency_days IS NULL) THEN '' ELSE 'recency_days ' END
        || CASE WHEN live.sentiment_avg_30d_milli = recomputed.sentiment_avg_30d_milli OR (live.sentiment_avg_30d_milli IS NULL AND recomputed.sentiment_avg_30d_milli IS NULL) THEN '' ELSE 'sentiment_avg_30d ' END
        || CASE WHEN live.campaign_ignored = recomputed.campaign_ignored OR (live.campaign_ignored IS NULL AND recomputed.campaign_ignored IS NULL) THEN '' ELSE 'campaign_ignored ' END
    ) AS different
FROM marts.lead_features_live AS live
INNER JOIN marts.lead_features_recomputed AS recomputed
    ON recomputed.lead_organization_id = live.lead_organization_id
CROSS JOIN newest
LEFT JOIN arrivals ON arrivals.root_id = live.lead_organization_id
