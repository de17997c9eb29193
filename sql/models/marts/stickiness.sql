WITH counted AS (
    SELECT
        daily.date_day,
        daily.active_users AS daily_active_users,
        CAST(SUM(COALESCE(monthly.change, 0)) OVER (ORDER BY daily.date_day ROWS UNBOUNDED PRECEDING) AS BIGINT)
            AS monthly_active_users
    FROM marts.daily_actives AS daily
    LEFT JOIN facts.monthly_changes AS monthly ON monthly.date_day = daily.date_day
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
