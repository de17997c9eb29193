-- Each source's users (by their first event), and how many of them took each step. A user may take a later step
-- without the earlier ones. Example: somebody who buys on the first day took step 4 without step 2.
WITH bought AS (
    SELECT DISTINCT user_id FROM facts.user_event_months WHERE purchases > 0
),
redeemed AS (
    SELECT DISTINCT user_id FROM facts.redemptions WHERE NOT is_reversed
),
users AS (
    SELECT
        users.user_id,
        users.first_source AS source,
        CASE WHEN users.active_days >= 2 THEN 1 ELSE 0 END AS came_back,
        CASE WHEN users.longest_streak >= 7 THEN 1 ELSE 0 END AS kept_a_week,
        CASE WHEN bought.user_id IS NULL THEN 0 ELSE 1 END AS bought,
        CASE WHEN redeemed.user_id IS NULL THEN 0 ELSE 1 END AS redeemed
    FROM dimensions.users AS users
    LEFT JOIN bought ON bought.user_id = users.user_id
    LEFT JOIN redeemed ON redeemed.user_id = users.user_id
    WHERE users.first_source IS NOT NULL
),
steps AS (
    SELECT source, 1 AS step_number, 'first event' AS step, COUNT(*) AS users FROM users GROUP BY source
    UNION ALL SELECT source, 2, 'active on 2 dates', CAST(SUM(came_back) AS BIGINT) FROM users GROUP BY source
    UNION ALL SELECT source, 3, 'streak of 7 days', CAST(SUM(kept_a_week) AS BIGINT) FROM users GROUP BY source
    UNION ALL SELECT source, 4, 'purchase', CAST(SUM(bought) AS BIGINT) FROM users GROUP BY source
    UNION ALL SELECT source, 5, 'redemption', CAST(SUM(redeemed) AS BIGINT) FROM users GROUP BY source
)
SELECT
    steps.source,
    steps.step_number,
    steps.step,
    steps.users,
    CAST(steps.users AS DOUBLE PRECISION) / CAST(brought.users AS DOUBLE PRECISION) AS share
FROM steps
INNER JOIN steps AS brought ON brought.source = steps.source AND brought.step_number = 1
