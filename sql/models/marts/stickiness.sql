-- An active date makes its user monthly active for 30 dates, or until the user's next active date. So each active
-- date is two changes of a running sum: +1, and -1 later. (A join with 30 dates would make 30 rows of it.)
WITH followed AS (
    SELECT
        user_id,
        activity_date,
        LEAD(activity_date) OVER (PARTITION BY user_id ORDER BY activity_date) AS next_date
    FROM facts.daily_activity
),
changes AS (
    SELECT activity_date AS date_day, 1 AS change FROM followed
    UNION ALL
    SELECT
        CASE
            WHEN next_date < CAST(DATEADD(day, 30, activity_date) AS DATE) THEN next_date
            ELSE CAST(DATEADD(day, 30, activity_date) AS DATE)
        END AS date_day,
        -1 AS change
    FROM followed
),
by_day AS (
    SELECT date_day, SUM(change) AS change FROM changes GROUP BY date_day
),
counted AS (
    SELECT
        daily.date_day,
        daily.active_users AS daily_active_users,
        CAST(SUM(COALESCE(by_day.change, 0)) OVER (ORDER BY daily.date_day ROWS UNBOUNDED PRECEDING) AS BIGINT)
            AS monthly_active_users
    FROM marts.daily_actives AS daily
    LEFT JOIN by_day ON by_day.date_day = daily.date_day
)
SELECT
    date_day,
    daily_active_users,
    monthly_active_users,
    CASE
        WHEN monthly_active_users > 0
            THEN CAST(daily_active_users AS DOUBLE PRECISION) / CAST(monthly_active_users AS DOUBLE PRECISION)
    END AS stickiness
FROM counted
