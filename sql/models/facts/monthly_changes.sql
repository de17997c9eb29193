-- An active date makes its user monthly active for 30 dates, or until the user's next active date. So each active
-- date is two changes of a running sum: +1, and -1 later. (A join with 30 dates would make 30 rows of it.)
-- The changes of a date follow from the activity on it and on the 30 dates before.
WITH followed AS (
    SELECT
        user_id,
        activity_date,
        LEAD(activity_date) OVER (PARTITION BY user_id ORDER BY activity_date) AS next_date
    FROM facts.daily_activity
    WHERE events_count > 0
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
)
SELECT
    date_day,
    CAST(SUM(change) AS BIGINT) AS change
FROM changes
GROUP BY date_day
