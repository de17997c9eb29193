-- What is asked of a user's events, by month. Events are in the lake under occurred_at, so a night reads the touched
-- months of that. Revenue goes by activity_date: at a month's end it may be in another month than occurred_at.
WITH ordered AS (
    SELECT
        user_id,
        CAST(DATE_TRUNC('month', occurred_date) AS DATE) AS occurred_month,
        CAST(DATE_TRUNC('month', activity_date) AS DATE) AS activity_month,
        event_id,
        event_type,
        source,
        occurred_at,
        amount,
        quantity,
        CASE WHEN event_type = 'PURCHASE_COMPLETED' THEN 1 ELSE 0 END AS is_purchase,
        ROW_NUMBER() OVER (
            PARTITION BY user_id, DATE_TRUNC('month', occurred_date), DATE_TRUNC('month', activity_date)
            ORDER BY occurred_at, event_id
        ) AS place
    FROM facts.events
)
SELECT
    user_id,
    occurred_month,
    activity_month,
    COUNT(*) AS events,
    MAX(CASE WHEN place = 1 THEN event_id END) AS first_event_id,
    MAX(CASE WHEN place = 1 THEN event_type END) AS first_event_type,
    MAX(CASE WHEN place = 1 THEN source END) AS first_source,
    MIN(occurred_at) AS first_event_at,
    CAST(SUM(is_purchase) AS BIGINT) AS purchases,
    CAST(SUM(CASE WHEN is_purchase = 1 THEN COALESCE(quantity, 0) ELSE 0 END) AS BIGINT) AS quantity,
    CAST(SUM(CASE WHEN is_purchase = 1 THEN COALESCE(amount, 0) ELSE 0 END) AS DECIMAL(38, 2)) AS revenue,
    CAST(SUM(CASE WHEN is_purchase = 1 AND amount IS NULL THEN 1 ELSE 0 END) AS BIGINT) AS unreadable_amounts
FROM ordered
GROUP BY user_id, occurred_month, activity_month
