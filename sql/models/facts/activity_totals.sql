-- What daily figures need of a date's activity, so that they need not read all of it again each night.
SELECT
    activity_date,
    COUNT(*) AS active_users,
    CAST(SUM(events_count) AS BIGINT) AS events_count,
    CAST(SUM(points_earned) AS BIGINT) AS points_earned
FROM facts.daily_activity
WHERE events_count > 0
GROUP BY activity_date
