-- The first 100 places of each day and month. Users with the same points share a place (1, 2, 2, 4). A
-- late row makes all places of its day and its month anew.
WITH earned AS (
    SELECT
        'day' AS period_kind,
        activity_date AS period_start,
        user_id,
        points_earned AS points
    FROM facts.daily_activity
    WHERE events_count > 0
    UNION ALL
    SELECT
        'month' AS period_kind,
        activity_month AS period_start,
        user_id,
        CAST(SUM(points_earned) AS BIGINT) AS points
    FROM facts.daily_activity
    WHERE events_count > 0
    GROUP BY activity_month, user_id
),
placed AS (
    SELECT
        period_kind,
        period_start,
        user_id,
        points,
        RANK() OVER (PARTITION BY period_kind, period_start ORDER BY points DESC) AS place
    FROM earned
)
SELECT
    period_kind,
    period_start,
    user_id,
    points,
    place
FROM placed
WHERE place <= 100 AND points > 0
