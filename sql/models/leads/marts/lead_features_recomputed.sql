-- The features of each lead, computed from its events for the instants of lead_features_live.
-- Generated from rules/leads/features.py by `make models`.
-- Where the live table has not computed an input of a lead yet, the input's features are NULL here too.
WITH leads AS (
    SELECT
        lead_organization_id AS lead_id,
        version,
        purchases_as_of,
        sentiment_as_of,
        activity_as_of,
        campaigns_as_of
    FROM marts.lead_features_live
),
purchases_rows AS (
    SELECT
        lead_organization_id,
        occurred_at,
        event_date,
        CASE WHEN event_type = 'order_cancelled' THEN -1 WHEN event_type = 'purchase_completed' THEN 1 ELSE 0 END AS counted,
        CASE WHEN foreign_minor IS NULL THEN CASE WHEN event_type = 'order_cancelled' THEN -1 WHEN event_type = 'purchase_completed' THEN 1 ELSE 0 END ELSE 0 END AS priced,
        CASE WHEN event_type = 'order_cancelled' THEN -COALESCE(amount_minor, 0) WHEN event_type = 'order_charged' THEN COALESCE(amount_minor, 0) WHEN event_type = 'order_refunded' THEN -COALESCE(amount_minor, 0) WHEN event_type = 'purchase_completed' THEN COALESCE(amount_minor, 0) ELSE 0 END AS amount
    FROM facts.lead_events
    WHERE event_type IN ('order_cancelled', 'order_charged', 'order_refunded', 'purchase_completed') AND (amount_minor IS NOT NULL OR foreign_minor IS NOT NULL)
),
purchases_dates AS (
    SELECT
        leads.lead_id,
        CAST(leads.purchases_as_of AS DATE) AS as_of_date,
        found.event_date,
        SUM(found.counted) AS counted,
        SUM(found.priced) AS priced,
        SUM(found.amount) AS amount
    FROM leads
    INNER JOIN dimensions.leads AS leaves ON leaves.root_id = leads.lead_id
    INNER JOIN purchases_rows AS found ON found.lead_organization_id = leaves.lead_organization_id
    WHERE found.occurred_at <= leads.purchases_as_of
    GROUP BY leads.lead_id, CAST(leads.purchases_as_of AS DATE), found.event_date
),
purchases AS (
    SELECT
        lead_id,
        MIN(CASE WHEN counted > 0 THEN event_date END) AS first_day,
        MAX(CASE WHEN counted > 0 THEN event_date END) AS last_day,
        CAST(SUM(priced) AS BIGINT) AS priced,
        CAST(SUM(counted) AS BIGINT) AS count_all,
        CAST(SUM(amount) AS BIGINT) AS amount_all,
        CAST(SUM(CASE WHEN event_date > as_of_date - 30 THEN counted ELSE 0 END) AS BIGINT) AS count_30,
        CAST(SUM(CASE WHEN event_date > as_of_date - 30 THEN amount ELSE 0 END) AS BIGINT) AS amount_30,
        CAST(SUM(CASE WHEN event_date > as_of_date - 90 THEN counted ELSE 0 END) AS BIGINT) AS count_90,
        CAST(SUM(CASE WHEN event_date > as_of_date - 90 THEN amount ELSE 0 END) AS BIGINT) AS amount_90,
        CAST(SUM(CASE WHEN event_date > as_of_date - 365 THEN counted ELSE 0 END) AS BIGINT) AS count_365,
        CAST(SUM(CASE WHEN event_date > as_of_date - 365 THEN amount ELSE 0 END) AS BIGINT) AS amount_365
    FROM purchases_dates
    GROUP BY lead_id
),
sentiment_rows AS (
    SELECT
        lead_organization_id,
        occurred_at,
        event_date,
        1 AS counted,
        CASE WHEN foreign_minor IS NULL THEN 1 ELSE 0 END AS priced,
        sentiment_milli AS amount
    FROM facts.lead_events
    WHERE event_type IN ('form_submitted', 'message_received') AND sentiment_milli IS NOT NULL
),
sentiment_dates AS (
    SELECT
        leads.lead_id,
        CAST(leads.sentiment_as_of AS DATE) AS as_of_date,
        found.event_date,
        SUM(found.counted) AS counted,
        SUM(found.priced) AS priced,
        SUM(found.amount) AS amount
    FROM leads
    INNER JOIN dimensions.leads AS leaves ON leaves.root_id = leads.lead_id
    INNER JOIN sentiment_rows AS found ON found.lead_organization_id = leaves.lead_organization_id
    WHERE found.occurred_at <= leads.sentiment_as_of
    GROUP BY leads.lead_id, CAST(leads.sentiment_as_of AS DATE), found.event_date
),
sentiment AS (
    SELECT
        lead_id,
        MIN(CASE WHEN counted > 0 THEN event_date END) AS first_day,
        MAX(CASE WHEN counted > 0 THEN event_date END) AS last_day,
        CAST(SUM(priced) AS BIGINT) AS priced,
        CAST(SUM(counted) AS BIGINT) AS count_all,
        CAST(SUM(amount) AS BIGINT) AS amount_all,
        CAST(SUM(CASE WHEN event_date > as_of_date - 30 THEN counted ELSE 0 END) AS BIGINT) AS count_30,
        CAST(SUM(CASE WHEN event_date > as_of_date - 30 THEN amount ELSE 0 END) AS BIGINT) AS amount_30
    FROM sentiment_dates
    GROUP BY lead_id
),
activity_rows AS (
    SELECT
        lead_organization_id,
        occurred_at,
        event_date,
        1 AS counted,
        CASE WHEN foreign_minor IS NULL THEN 1 ELSE 0 END AS priced,
        0 AS amount
    FROM facts.lead_events
    WHERE event_type IN ('campaign_clicked', 'campaign_opened', 'campaign_replied', 'campaign_unsubscribed', 'form_submitted', 'message_received', 'objection_raised', 'page_viewed', 'preference_stated', 'purchase_completed') AND unreadable IS NULL
),
activity_dates AS (
    SELECT
        leads.lead_id,
        CAST(leads.activity_as_of AS DATE) AS as_of_date,
        found.event_date,
        SUM(found.counted) AS counted,
        SUM(found.priced) AS priced,
        SUM(found.amount) AS amount
    FROM leads
    INNER JOIN dimensions.leads AS leaves ON leaves.root_id = leads.lead_id
    INNER JOIN activity_rows AS found ON found.lead_organization_id = leaves.lead_organization_id
    WHERE found.occurred_at <= leads.activity_as_of
    GROUP BY leads.lead_id, CAST(leads.activity_as_of AS DATE), found.event_date
),
activity AS (
    SELECT
        lead_id,
        MIN(CASE WHEN counted > 0 THEN event_date END) AS first_day,
        MAX(CASE WHEN counted > 0 THEN event_date END) AS last_day,
        CAST(SUM(priced) AS BIGINT) AS priced,
        CAST(SUM(counted) AS BIGINT) AS count_all,
        CAST(SUM(amount) AS BIGINT) AS amount_all
    FROM activity_dates
    GROUP BY lead_id
),
contacts AS (
    SELECT
        leads.lead_id,
        found.campaign_id,
        CAST(leads.campaigns_as_of AS DATE) AS as_of_date,
        MAX(CASE WHEN found.event_type = 'campaign_sent' THEN found.event_date END) AS sent_date,
        SUM(CASE WHEN found.event_type = 'campaign_sent' THEN 0 ELSE 1 END) AS reactions
    FROM leads
    INNER JOIN dimensions.leads AS leaves ON leaves.root_id = leads.lead_id
    INNER JOIN facts.lead_events AS found ON found.lead_organization_id = leaves.lead_organization_id
    WHERE found.event_type IN ('campaign_bounced', 'campaign_clicked', 'campaign_opened', 'campaign_replied', 'campaign_sent', 'campaign_unsubscribed')
        AND found.campaign_id IS NOT NULL
        AND found.occurred_at <= leads.campaigns_as_of
    GROUP BY leads.lead_id, found.campaign_id, CAST(leads.campaigns_as_of AS DATE)
),
campaigns AS (
    SELECT
        lead_id,
        COUNT(*) AS campaign_ignored
    FROM contacts
    WHERE reactions = 0
        AND sent_date > as_of_date - 90
        AND sent_date <= as_of_date - {campaign_grace_days}
    GROUP BY lead_id
)
SELECT
    leads.lead_id AS lead_organization_id,
    leads.version,
    CASE WHEN leads.purchases_as_of IS NOT NULL THEN CAST(COALESCE(purchases.amount_all, 0) AS BIGINT) END AS monetary_total_minor,
    CASE WHEN leads.purchases_as_of IS NOT NULL THEN CAST(COALESCE(purchases.amount_30, 0) AS BIGINT) END AS monetary_30d_minor,
    CASE WHEN leads.purchases_as_of IS NOT NULL THEN CAST(COALESCE(purchases.amount_90, 0) AS BIGINT) END AS monetary_90d_minor,
    CASE WHEN leads.purchases_as_of IS NOT NULL THEN CAST(COALESCE(purchases.amount_365, 0) AS BIGINT) END AS monetary_365d_minor,
    CASE WHEN leads.purchases_as_of IS NOT NULL THEN CAST(COALESCE(purchases.count_30, 0) AS BIGINT) END AS frequency_purchases_30d,
    CASE WHEN leads.purchases_as_of IS NOT NULL THEN CAST(COALESCE(purchases.count_90, 0) AS BIGINT) END AS frequency_purchases_90d,
    CASE WHEN leads.purchases_as_of IS NOT NULL THEN CAST(COALESCE(purchases.count_365, 0) AS BIGINT) END AS frequency_purchases_365d,
    CASE WHEN leads.purchases_as_of IS NOT NULL THEN CAST(CASE WHEN purchases.priced > 0 THEN ((2 * purchases.amount_all + purchases.priced) - MOD(MOD((2 * purchases.amount_all + purchases.priced), (2 * purchases.priced)) + (2 * purchases.priced), (2 * purchases.priced))) / (2 * purchases.priced) END AS BIGINT) END AS average_order_value_minor,
    CASE WHEN leads.purchases_as_of IS NOT NULL THEN CAST(CAST(leads.purchases_as_of AS DATE) - purchases.last_day AS BIGINT) END AS days_since_last_purchase,
    CASE WHEN leads.purchases_as_of IS NOT NULL THEN CAST(CAST(leads.purchases_as_of AS DATE) - purchases.first_day AS BIGINT) END AS tenure_days,
    CASE WHEN leads.purchases_as_of IS NOT NULL THEN COALESCE(purchases.count_all, 0) > 0 END AS has_purchased,
    CASE WHEN leads.activity_as_of IS NOT NULL THEN CAST(CAST(leads.activity_as_of AS DATE) - activity.last_day AS BIGINT) END AS recency_days,
    CASE WHEN leads.sentiment_as_of IS NOT NULL THEN CAST(CASE WHEN sentiment.count_30 > 0 THEN ((2 * sentiment.amount_30 + sentiment.count_30) - MOD(MOD((2 * sentiment.amount_30 + sentiment.count_30), (2 * sentiment.count_30)) + (2 * sentiment.count_30), (2 * sentiment.count_30))) / (2 * sentiment.count_30) END AS BIGINT) END AS sentiment_avg_30d_milli,
    CASE WHEN leads.campaigns_as_of IS NOT NULL THEN CAST(COALESCE(campaigns.campaign_ignored, 0) AS BIGINT) END AS campaign_ignored
FROM leads
LEFT JOIN purchases ON purchases.lead_id = leads.lead_id
LEFT JOIN sentiment ON sentiment.lead_id = leads.lead_id
LEFT JOIN activity ON activity.lead_id = leads.lead_id
LEFT JOIN campaigns ON campaigns.lead_id = leads.lead_id
