-- How many users of each cohort were active in a month or week. A cohort is the users who were first active in the
-- same month (or week). A late first day moves a user to another cohort: then all months of that user are made anew.
WITH activity AS (
    SELECT
        days.user_id,
        days.activity_date,
        users.first_active_date
    FROM facts.daily_activity AS days
    INNER JOIN dimensions.users AS users ON users.user_id = days.user_id
    WHERE days.events_count > 0
),
periods AS (
    SELECT DISTINCT
        'month' AS cohort_kind,
        user_id,
        CAST(DATE_TRUNC('month', first_active_date) AS DATE) AS cohort_start,
        CAST(DATE_TRUNC('month', activity_date) AS DATE) AS period_start
    FROM activity
    UNION ALL
    SELECT DISTINCT
        'week' AS cohort_kind,
        user_id,
        CAST(DATE_TRUNC('week', first_active_date) AS DATE) AS cohort_start,
        CAST(DATE_TRUNC('week', activity_date) AS DATE) AS period_start
    FROM activity
)
SELECT
    cohort_kind,
    cohort_start,
    period_start,
    COUNT(*) AS active_users
FROM periods
GROUP BY cohort_kind, cohort_start, period_start
