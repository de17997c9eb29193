-- Each lead's live features at the night's instant: the newest time of leads in the lake.
-- Generated from rules/leads/features.py by `make models`.
-- A state is text: its totals, then an entry for each date that a window may need, with spaces between them.
WITH digits AS (
    SELECT 0 AS digit UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
    UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9
),
numbers AS (
    SELECT 1 + ones.digit + 10 * tens.digit + 100 * hundreds.digit + 1000 * thousands.digit AS n
    FROM digits AS ones
    CROSS JOIN digits AS tens
    CROSS JOIN digits AS hundreds
    CROSS JOIN digits AS thousands
),
newest AS (
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
        CASE WHEN live.purchases_as_of > newest.seen_at THEN live.purchases_as_of WHEN live.purchases_as_of IS NOT NULL THEN newest.seen_at END AS purchases_as_of,
        CASE WHEN live.sentiment_as_of > newest.seen_at THEN live.sentiment_as_of WHEN live.sentiment_as_of IS NOT NULL THEN newest.seen_at END AS sentiment_as_of,
        CASE WHEN live.activity_as_of > newest.seen_at THEN live.activity_as_of WHEN live.activity_as_of IS NOT NULL THEN newest.seen_at END AS activity_as_of,
        CASE WHEN live.campaigns_as_of > newest.seen_at THEN live.campaigns_as_of WHEN live.campaigns_as_of IS NOT NULL THEN newest.seen_at END AS campaigns_as_of,
        live.purchases_state,
        live.sentiment_state,
        live.activity_state,
        live.campaigns_state,
        live.monetary_total_minor AS stored_monetary_total_minor,
        live.monetary_30d_minor AS stored_monetary_30d_minor,
        live.monetary_90d_minor AS stored_monetary_90d_minor,
        live.monetary_365d_minor AS stored_monetary_365d_minor,
        live.frequency_purchases_30d AS stored_frequency_purchases_30d,
        live.frequency_purchases_90d AS stored_frequency_purchases_90d,
        live.frequency_purchases_365d AS stored_frequency_purchases_365d,
        live.average_order_value_minor AS stored_average_order_value_minor,
        live.days_since_last_purchase AS stored_days_since_last_purchase,
        live.tenure_days AS stored_tenure_days,
        live.has_purchased AS stored_has_purchased,
        live.recency_days AS stored_recency_days,
        live.sentiment_avg_30d_milli AS stored_sentiment_avg_30d_milli,
        live.campaign_ignored AS stored_campaign_ignored
    FROM staging.lead_features AS live
    CROSS JOIN newest
    WHERE live.merged_into IS NULL
),
purchases_words AS (
    SELECT
        lead_id,
        CAST(purchases_as_of AS DATE) AS as_of_date,
        purchases_state AS words,
        LENGTH(purchases_state) - LENGTH(REPLACE(purchases_state, ' ', '')) AS entries
    FROM leads
    WHERE purchases_state IS NOT NULL AND purchases_as_of IS NOT NULL
),
purchases_places AS (
    SELECT ends.entries, numbers.n
    FROM (SELECT DISTINCT entries FROM purchases_words) AS ends
    INNER JOIN numbers ON numbers.n <= ends.entries
),
purchases_entries AS (
    SELECT states.lead_id, states.as_of_date, SPLIT_PART(states.words, ' ', places.n + 1) AS entry
    FROM purchases_words AS states
    INNER JOIN purchases_places AS places ON places.entries = states.entries
),
purchases_dates AS (
    SELECT
        lead_id,
        as_of_date,
        CAST(SPLIT_PART(entry, ':', 1) AS DATE) AS event_date,
        CAST(SPLIT_PART(entry, ':', 2) AS BIGINT) AS counted,
        CAST(SPLIT_PART(entry, ':', 3) AS BIGINT) AS amount
    FROM purchases_entries
),
purchases_sums AS (
    SELECT
        lead_id,
        CAST(SUM(CASE WHEN event_date > as_of_date - 30 THEN counted ELSE 0 END) AS BIGINT) AS count_30,
        CAST(SUM(CASE WHEN event_date > as_of_date - 30 THEN amount ELSE 0 END) AS BIGINT) AS amount_30,
        CAST(SUM(CASE WHEN event_date > as_of_date - 90 THEN counted ELSE 0 END) AS BIGINT) AS count_90,
        CAST(SUM(CASE WHEN event_date > as_of_date - 90 THEN amount ELSE 0 END) AS BIGINT) AS amount_90,
        CAST(SUM(CASE WHEN event_date > as_of_date - 365 THEN counted ELSE 0 END) AS BIGINT) AS count_365,
        CAST(SUM(CASE WHEN event_date > as_of_date - 365 THEN amount ELSE 0 END) AS BIGINT) AS amount_365
    FROM purchases_dates
    GROUP BY lead_id
),
purchases AS (
    SELECT
        states.lead_id,
        CAST(NULLIF(SPLIT_PART(SPLIT_PART(states.words, ' ', 1), ':', 1), '') AS BIGINT) AS count_all,
        CAST(NULLIF(SPLIT_PART(SPLIT_PART(states.words, ' ', 1), ':', 2), '') AS BIGINT) AS amount_all,
        CAST(NULLIF(SPLIT_PART(SPLIT_PART(states.words, ' ', 1), ':', 3), '') AS BIGINT) AS priced,
        CAST(NULLIF(SPLIT_PART(SPLIT_PART(states.words, ' ', 1), ':', 4), '') AS DATE) AS first_day,
        CAST(NULLIF(SPLIT_PART(SPLIT_PART(states.words, ' ', 1), ':', 5), '') AS DATE) AS last_day,
        sums.count_30,
        sums.amount_30,
        sums.count_90,
        sums.amount_90,
        sums.count_365,
        sums.amount_365
    FROM purchases_words AS states
    LEFT JOIN purchases_sums AS sums ON sums.lead_id = states.lead_id
),
sentiment_words AS (
    SELECT
        lead_id,
        CAST(sentiment_as_of AS DATE) AS as_of_date,
        sentiment_state AS words,
        LENGTH(sentiment_state) - LENGTH(REPLACE(sentiment_state, ' ', '')) AS entries
    FROM leads
    WHERE sentiment_state IS NOT NULL AND sentiment_as_of IS NOT NULL
),
sentiment_places AS (
    SELECT ends.entries, numbers.n
    FROM (SELECT DISTINCT entries FROM sentiment_words) AS ends
    INNER JOIN numbers ON numbers.n <= ends.entries
),
sentiment_entries AS (
    SELECT states.lead_id, states.as_of_date, SPLIT_PART(states.words, ' ', places.n + 1) AS entry
    FROM sentiment_words AS states
    INNER JOIN sentiment_places AS places ON places.entries = states.entries
),
sentiment_dates AS (
    SELECT
        lead_id,
        as_of_date,
        CAST(SPLIT_PART(entry, ':', 1) AS DATE) AS event_date,
        CAST(SPLIT_PART(entry, ':', 2) AS BIGINT) AS counted,
        CAST(SPLIT_PART(entry, ':', 3) AS BIGINT) AS amount
    FROM sentiment_entries
),
sentiment_sums AS (
    SELECT
        lead_id,
        CAST(SUM(CASE WHEN event_date > as_of_date - 30 THEN counted ELSE 0 END) AS BIGINT) AS count_30,
        CAST(SUM(CASE WHEN event_date > as_of_date - 30 THEN amount ELSE 0 END) AS BIGINT) AS amount_30
    FROM sentiment_dates
    GROUP BY lead_id
),
sentiment AS (
    SELECT
        states.lead_id,
        CAST(NULLIF(SPLIT_PART(SPLIT_PART(states.words, ' ', 1), ':', 1), '') AS BIGINT) AS count_all,
        CAST(NULLIF(SPLIT_PART(SPLIT_PART(states.words, ' ', 1), ':', 2), '') AS BIGINT) AS amount_all,
        CAST(NULLIF(SPLIT_PART(SPLIT_PART(states.words, ' ', 1), ':', 3), '') AS BIGINT) AS priced,
        CAST(NULLIF(SPLIT_PART(SPLIT_PART(states.words, ' ', 1), ':', 4), '') AS DATE) AS first_day,
        CAST(NULLIF(SPLIT_PART(SPLIT_PART(states.words, ' ', 1), ':', 5), '') AS DATE) AS last_day,
        sums.count_30,
        sums.amount_30
    FROM sentiment_words AS states
    LEFT JOIN sentiment_sums AS sums ON sums.lead_id = states.lead_id
),
activity_words AS (
    SELECT
        lead_id,
        CAST(activity_as_of AS DATE) AS as_of_date,
        activity_state AS words,
        LENGTH(activity_state) - LENGTH(REPLACE(activity_state, ' ', '')) AS entries
    FROM leads
    WHERE activity_state IS NOT NULL AND activity_as_of IS NOT NULL
),
activity AS (
    SELECT
        states.lead_id,
        CAST(NULLIF(SPLIT_PART(SPLIT_PART(states.words, ' ', 1), ':', 1), '') AS BIGINT) AS count_all,
        CAST(NULLIF(SPLIT_PART(SPLIT_PART(states.words, ' ', 1), ':', 2), '') AS BIGINT) AS amount_all,
        CAST(NULLIF(SPLIT_PART(SPLIT_PART(states.words, ' ', 1), ':', 3), '') AS BIGINT) AS priced,
        CAST(NULLIF(SPLIT_PART(SPLIT_PART(states.words, ' ', 1), ':', 4), '') AS DATE) AS first_day,
        CAST(NULLIF(SPLIT_PART(SPLIT_PART(states.words, ' ', 1), ':', 5), '') AS DATE) AS last_day
    FROM activity_words AS states
),
campaigns_words AS (
    SELECT
        lead_id,
        CAST(campaigns_as_of AS DATE) AS as_of_date,
        campaigns_state AS words,
        LENGTH(campaigns_state) - LENGTH(REPLACE(campaigns_state, ' ', '')) AS entries
    FROM leads
    WHERE campaigns_state IS NOT NULL AND campaigns_as_of IS NOT NULL
),
campaigns_places AS (
    SELECT ends.entries, numbers.n
    FROM (SELECT DISTINCT entries FROM campaigns_words) AS ends
    INNER JOIN numbers ON numbers.n <= ends.entries
),
campaigns_entries AS (
    SELECT states.lead_id, states.as_of_date, SPLIT_PART(states.words, ' ', places.n + 1) AS entry
    FROM campaigns_words AS states
    INNER JOIN campaigns_places AS places ON places.entries = states.entries
),
campaigns_dates AS (
    SELECT
        lead_id,
        as_of_date,
        CAST(SPLIT_PART(entry, ':', 1) AS DATE) AS event_date
    FROM campaigns_entries
),
campaigns AS (
    SELECT
        lead_id,
        COUNT(*) AS campaign_ignored
    FROM campaigns_dates
    WHERE event_date > as_of_date - 90
        AND event_date <= as_of_date - {campaign_grace_days}
    GROUP BY lead_id
)
SELECT
    leads.lead_id AS lead_organization_id,
    leads.version,
    leads.computed_at,
    leads.active_on,
    leads.seen_at AS as_of,
    leads.purchases_as_of,
    leads.sentiment_as_of,
    leads.activity_as_of,
    leads.campaigns_as_of,
    CASE WHEN leads.purchases_as_of IS NOT NULL THEN CASE WHEN leads.purchases_state IS NULL THEN leads.stored_monetary_total_minor ELSE CAST(COALESCE(purchases.amount_all, 0) AS BIGINT) END END AS monetary_total_minor,
    CASE WHEN leads.purchases_as_of IS NOT NULL THEN CASE WHEN leads.purchases_state IS NULL THEN leads.stored_monetary_30d_minor ELSE CAST(COALESCE(purchases.amount_30, 0) AS BIGINT) END END AS monetary_30d_minor,
    CASE WHEN leads.purchases_as_of IS NOT NULL THEN CASE WHEN leads.purchases_state IS NULL THEN leads.stored_monetary_90d_minor ELSE CAST(COALESCE(purchases.amount_90, 0) AS BIGINT) END END AS monetary_90d_minor,
    CASE WHEN leads.purchases_as_of IS NOT NULL THEN CASE WHEN leads.purchases_state IS NULL THEN leads.stored_monetary_365d_minor ELSE CAST(COALESCE(purchases.amount_365, 0) AS BIGINT) END END AS monetary_365d_minor,
    CASE WHEN leads.purchases_as_of IS NOT NULL THEN CASE WHEN leads.purchases_state IS NULL THEN leads.stored_frequency_purchases_30d ELSE CAST(COALESCE(purchases.count_30, 0) AS BIGINT) END END AS frequency_purchases_30d,
    CASE WHEN leads.purchases_as_of IS NOT NULL THEN CASE WHEN leads.purchases_state IS NULL THEN leads.stored_frequency_purchases_90d ELSE CAST(COALESCE(purchases.count_90, 0) AS BIGINT) END END AS frequency_purchases_90d,
    CASE WHEN leads.purchases_as_of IS NOT NULL THEN CASE WHEN leads.purchases_state IS NULL THEN leads.stored_frequency_purchases_365d ELSE CAST(COALESCE(purchases.count_365, 0) AS BIGINT) END END AS frequency_purchases_365d,
    CASE WHEN leads.purchases_as_of IS NOT NULL THEN CASE WHEN leads.purchases_state IS NULL THEN leads.stored_average_order_value_minor ELSE CAST(CASE WHEN purchases.priced > 0 THEN ((2 * purchases.amount_all + purchases.priced) - MOD(MOD((2 * purchases.amount_all + purchases.priced), (2 * purchases.priced)) + (2 * purchases.priced), (2 * purchases.priced))) / (2 * purchases.priced) END AS BIGINT) END END AS average_order_value_minor,
    CASE WHEN leads.purchases_as_of IS NOT NULL THEN CASE WHEN leads.purchases_state IS NULL THEN leads.stored_days_since_last_purchase ELSE CAST(CAST(leads.purchases_as_of AS DATE) - purchases.last_day AS BIGINT) END END AS days_since_last_purchase,
    CASE WHEN leads.purchases_as_of IS NOT NULL THEN CASE WHEN leads.purchases_state IS NULL THEN leads.stored_tenure_days ELSE CAST(CAST(leads.purchases_as_of AS DATE) - purchases.first_day AS BIGINT) END END AS tenure_days,
    CASE WHEN leads.purchases_as_of IS NOT NULL THEN CASE WHEN leads.purchases_state IS NULL THEN leads.stored_has_purchased ELSE COALESCE(purchases.count_all, 0) > 0 END END AS has_purchased,
    CASE WHEN leads.activity_as_of IS NOT NULL THEN CASE WHEN leads.activity_state IS NULL THEN leads.stored_recency_days ELSE CAST(CAST(leads.activity_as_of AS DATE) - activity.last_day AS BIGINT) END END AS recency_days,
    CASE WHEN leads.sentiment_as_of IS NOT NULL THEN CASE WHEN leads.sentiment_state IS NULL THEN leads.stored_sentiment_avg_30d_milli ELSE CAST(CASE WHEN sentiment.count_30 > 0 THEN ((2 * sentiment.amount_30 + sentiment.count_30) - MOD(MOD((2 * sentiment.amount_30 + sentiment.count_30), (2 * sentiment.count_30)) + (2 * sentiment.count_30), (2 * sentiment.count_30))) / (2 * sentiment.count_30) END AS BIGINT) END END AS sentiment_avg_30d_milli,
    CASE WHEN leads.campaigns_as_of IS NOT NULL THEN CASE WHEN leads.campaigns_state IS NULL THEN leads.stored_campaign_ignored ELSE CAST(COALESCE(campaigns.campaign_ignored, 0) AS BIGINT) END END AS campaign_ignored
FROM leads
LEFT JOIN purchases ON purchases.lead_id = leads.lead_id
LEFT JOIN sentiment ON sentiment.lead_id = leads.lead_id
LEFT JOIN activity ON activity.lead_id = leads.lead_id
LEFT JOIN campaigns ON campaigns.lead_id = leads.lead_id
