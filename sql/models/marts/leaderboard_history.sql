-- The first 100 places of each day and month. Users with the same points share a place (1, 2, 2, 4). load_number is
-- the newest of the whole day or month, so that one late row replaces all places of its day and month.
WITH earned AS (
    SELECT
        'day' AS period_kind,
        activity_date AS period_start,
        user_id,
        points_earned AS points,
        load_number
    FROM facts.daily_activity
    UNION ALL
    SELECT
        'month' AS period_kind,
        activity_month AS period_start,
        user_id,
        CAST(SUM(points_earned) AS BIGINT) AS points,
        MAX(load_number) AS load_number
    FROM facts.daily_activity
    GROUP BY activity_month, user_id
),
placed AS (
    SELECT
        period_kind,
        period_start,
        user_id,
        points,
        RANK() OVER (PARTITION BY period_kind, period_start ORDER BY points DESC) AS place,
        MAX(load_number) OVER (PARTITION BY period_kind, period_start) AS load_number
    FROM earned
)
SELECT
    period_kind,
    period_start,
    user_id,
    points,
    place,
    load_number
FROM placed
WHERE place <= 100 AND points > 0
