-- Scores every buyer by quintile of recency, frequency and monetary value. All scores are as of one date: the newest
-- date of any lead's event in the lake. They are computed from purchases. Live features would not do, because each
-- lead's are as of another instant, long ago for an inactive lead. Leads with the same figure share a score.
WITH as_of AS (
    SELECT MAX(event_date) AS as_of_date FROM facts.lead_events
),
dates AS (
    SELECT
        leads.root_id,
        purchases.event_date,
        SUM(purchases.orders) AS orders,
        SUM(COALESCE(purchases.amount_minor, 0)) AS spent_minor
    FROM facts.lead_purchases AS purchases
    INNER JOIN dimensions.leads AS leads ON leads.lead_organization_id = purchases.lead_organization_id
    GROUP BY leads.root_id, purchases.event_date
),
bought AS (
    SELECT
        root_id,
        MAX(CASE WHEN orders > 0 THEN event_date END) AS last_order_date,
        CAST(SUM(orders) AS BIGINT) AS orders,
        CAST(SUM(spent_minor) AS BIGINT) AS spent_minor
    FROM dates
    GROUP BY root_id
),
placed AS (
    SELECT
        bought.root_id,
        as_of.as_of_date,
        as_of.as_of_date - bought.last_order_date AS recency_days,
        bought.orders,
        bought.spent_minor,
        5 * (RANK() OVER (ORDER BY bought.last_order_date) - 1) AS recency_place,
        5 * (RANK() OVER (ORDER BY bought.orders) - 1) AS frequency_place,
        5 * (RANK() OVER (ORDER BY bought.spent_minor) - 1) AS monetary_place,
        COUNT(*) OVER () AS buyers
    FROM bought
    CROSS JOIN as_of
    WHERE bought.orders > 0
),
scored AS (
    SELECT
        root_id,
        as_of_date,
        recency_days,
        orders,
        spent_minor,
        CASE
            WHEN recency_place < buyers THEN 1
            WHEN recency_place < 2 * buyers THEN 2
            WHEN recency_place < 3 * buyers THEN 3
            WHEN recency_place < 4 * buyers THEN 4
            ELSE 5
        END AS r_score,
        CASE
            WHEN frequency_place < buyers THEN 1
            WHEN frequency_place < 2 * buyers THEN 2
            WHEN frequency_place < 3 * buyers THEN 3
            WHEN frequency_place < 4 * buyers THEN 4
            ELSE 5
        END AS f_score,
        CASE
            WHEN monetary_place < buyers THEN 1
            WHEN monetary_place < 2 * buyers THEN 2
            WHEN monetary_place < 3 * buyers THEN 3
            WHEN monetary_place < 4 * buyers THEN 4
            ELSE 5
        END AS m_score
    FROM placed
)
SELECT
    root_id AS lead_organization_id,
    as_of_date,
    CAST(recency_days AS BIGINT) AS recency_days,
    CAST(orders AS BIGINT) AS orders,
    spent_minor,
    r_score,
    f_score,
    m_score,
    CASE
        WHEN r_score >= 4 AND f_score + m_score >= 8 THEN 'champions'
        WHEN r_score >= 3 AND f_score + m_score >= 6 THEN 'loyal'
        WHEN r_score = 5 AND f_score = 1 THEN 'new'
        WHEN r_score >= 4 THEN 'promising'
        WHEN r_score = 3 THEN 'needs attention'
        WHEN r_score = 1 AND f_score + m_score >= 8 THEN 'cannot lose'
        WHEN f_score + m_score >= 6 THEN 'at risk'
        WHEN r_score = 2 THEN 'about to sleep'
        ELSE 'hibernating'
    END AS segment
FROM scored
