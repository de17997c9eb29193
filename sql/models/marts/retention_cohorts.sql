-- A cohort is the users who were first active in the same month (or week). Period 0 is that month (or week).
WITH activity AS (
    SELECT
        days.user_id,
        days.activity_date,
        users.first_active_date
    FROM facts.daily_activity AS days
    INNER JOIN dimensions.users AS users ON users.user_id = days.user_id
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
),
counted AS (
    SELECT
        cohort_kind,
        cohort_start,
        period_start,
        COUNT(*) AS active_users
    FROM periods
    GROUP BY cohort_kind, cohort_start, period_start
),
sizes AS (
    SELECT
        cohort_kind,
        cohort_start,
        active_users AS cohort_users
    FROM counted
    WHERE period_start = cohort_start
)
SELECT
    counted.cohort_kind,
    counted.cohort_start,
    CASE
        WHEN counted.cohort_kind = 'month'
            THEN CAST(
                12 * (EXTRACT(year FROM counted.period_start) - EXTRACT(year FROM counted.cohort_start))
                + EXTRACT(month FROM counted.period_start) - EXTRACT(month FROM counted.cohort_start)
                AS BIGINT
            )
        ELSE CAST(DATEDIFF(day, counted.cohort_start, counted.period_start) / 7 AS BIGINT)
    END AS period_number,
    sizes.cohort_users,
    counted.active_users,
    CAST(counted.active_users AS DOUBLE PRECISION) / CAST(sizes.cohort_users AS DOUBLE PRECISION) AS retention
FROM counted
INNER JOIN sizes ON sizes.cohort_kind = counted.cohort_kind AND sizes.cohort_start = counted.cohort_start
