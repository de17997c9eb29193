-- What is asked of a user's whole history, by month: so a night reads the days of the touched months, and no others.
WITH ordered AS (
    SELECT
        user_id,
        activity_month,
        activity_date,
        events_count,
        points_earned,
        load_number,
        ROW_NUMBER() OVER (PARTITION BY user_id, activity_month ORDER BY activity_date) AS place
    FROM facts.daily_activity
    WHERE events_count > 0
)
SELECT
    user_id,
    activity_month,
    COUNT(*) AS active_days,
    MIN(activity_date) AS first_date,
    MAX(activity_date) AS last_date,
    CAST(SUM(events_count) AS BIGINT) AS events_count,
    CAST(SUM(points_earned) AS BIGINT) AS points_earned,
    MAX(CASE WHEN place = 1 THEN load_number END) AS first_load
FROM ordered
GROUP BY user_id, activity_month
