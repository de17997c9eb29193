-- What is asked of a user's whole history, by month: so a night reads the days of the touched months, and no others.
-- Dates in a row have the same difference between the day of the month and their place among the month's dates.
WITH ordered AS (
    SELECT
        user_id,
        activity_month,
        activity_date,
        events_count,
        points_earned,
        load_number,
        CAST(EXTRACT(DAY FROM activity_date) AS BIGINT) AS day_number,
        ROW_NUMBER() OVER (PARTITION BY user_id, activity_month ORDER BY activity_date) AS place
    FROM facts.daily_activity
    WHERE events_count > 0
),
runs AS (
    SELECT
        user_id,
        activity_month,
        COUNT(*) AS active_days,
        MIN(activity_date) AS first_date,
        MAX(activity_date) AS last_date,
        SUM(CAST(POWER(2, day_number - 1) AS BIGINT)) AS active_dates,
        SUM(events_count) AS events_count,
        SUM(points_earned) AS points_earned,
        MAX(CASE WHEN place = 1 THEN load_number END) AS first_load
    FROM ordered
    GROUP BY user_id, activity_month, day_number - place
)
SELECT
    user_id,
    activity_month,
    CAST(SUM(active_days) AS BIGINT) AS active_days,
    MIN(first_date) AS first_date,
    MIN(last_date) AS first_run_until,
    MAX(first_date) AS last_run_since,
    MAX(last_date) AS last_date,
    MAX(active_days) AS longest_run,
    CAST(SUM(active_dates) AS BIGINT) AS active_dates,
    CAST(SUM(events_count) AS BIGINT) AS events_count,
    CAST(SUM(points_earned) AS BIGINT) AS points_earned,
    MAX(first_load) AS first_load
FROM runs
GROUP BY user_id, activity_month
