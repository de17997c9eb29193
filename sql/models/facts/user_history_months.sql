-- What achievements add up of a user's history (rule 15), by month of activity_date: points, the events of each type, and
-- each property that was measured of them. It is the same whichever of these a book asks for.
WITH
digits AS (
    SELECT 0 AS digit UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
    UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9
),
numbers AS (
    SELECT 1 + ones.digit + 10 * tens.digit + 100 * hundreds.digit AS n
    FROM digits AS ones
    CROSS JOIN digits AS tens
    CROSS JOIN digits AS hundreds
),
reversed AS (
    SELECT DISTINCT user_id, event_id FROM facts.ledger WHERE kind = 'CLAWBACK' AND event_id IS NOT NULL
),
earning AS (
    SELECT
        ledger.user_id,
        CAST(DATE_TRUNC('month', ledger.activity_date) AS DATE) AS activity_month,
        ledger.activity_date,
        ledger.event_id,
        ledger.event_type,
        ledger.measures,
        ledger.points,
        CASE WHEN ledger.kind = 'EARN' AND ledger.event_id IS NOT NULL AND reversed.event_id IS NULL THEN 1 ELSE 0 END
        AS is_counted
    FROM facts.ledger AS ledger
    LEFT JOIN reversed ON reversed.user_id = ledger.user_id AND reversed.event_id = ledger.event_id
    WHERE ledger.kind IN ('EARN', 'CLAWBACK', 'RERATE') AND ledger.activity_date IS NOT NULL
),
-- What was corrected of a date's points counts with its first event. So the sum of points may fall from one date to the
-- next, but not within a date: an event's own points are never below 0.
dated AS (
    SELECT user_id, activity_month, activity_date, SUM(points) AS points
    FROM earning
    GROUP BY user_id, activity_month, activity_date
    HAVING SUM(is_counted) > 0
),
summed AS (
    SELECT
        user_id,
        activity_month,
        activity_date,
        points,
        SUM(points) OVER (
            PARTITION BY user_id, activity_month ORDER BY activity_date ROWS UNBOUNDED PRECEDING
        ) AS have
    FROM dated
),
measured AS (
    SELECT
        earning.user_id,
        earning.activity_month,
        earning.activity_date,
        earning.event_type,
        SPLIT_PART(earning.measures, ',', numbers.n) AS measure
    FROM earning
    INNER JOIN numbers
        ON numbers.n <= LENGTH(earning.measures) - LENGTH(REPLACE(earning.measures, ',', '')) + 1
    WHERE earning.is_counted = 1 AND STRPOS(earning.measures, '=') > 0
)
SELECT
    user_id,
    activity_month,
    event_type,
    SPLIT_PART(measure, '=', 1) AS property,
    CAST(SUM(CAST(NULLIF(SPLIT_PART(measure, '=', 2), '') AS BIGINT)) AS BIGINT) AS amount,
    CAST(SUM(CAST(NULLIF(SPLIT_PART(measure, '=', 2), '') AS BIGINT)) AS BIGINT) AS highest,
    MAX(activity_date) AS last_date
FROM measured
WHERE event_type IS NOT NULL AND STRPOS(measure, '=') > 0
GROUP BY user_id, activity_month, event_type, SPLIT_PART(measure, '=', 1)
UNION ALL
SELECT
    user_id,
    activity_month,
    event_type,
    '' AS property,
    COUNT(*) AS amount,
    COUNT(*) AS highest,
    MAX(activity_date) AS last_date
FROM earning
WHERE is_counted = 1 AND event_type IS NOT NULL
GROUP BY user_id, activity_month, event_type
UNION ALL
SELECT
    user_id,
    activity_month,
    '' AS event_type,
    '' AS property,
    CAST(SUM(points) AS BIGINT) AS amount,
    CAST(MAX(have) AS BIGINT) AS highest,
    MAX(activity_date) AS last_date
FROM summed
GROUP BY user_id, activity_month
