-- active = new + retained (active in the month before too) + resurrected (active earlier, not in the month before).
WITH followed AS (
    SELECT
        user_id,
        activity_month,
        events_count,
        points_earned,
        LAG(activity_month) OVER (PARTITION BY user_id ORDER BY activity_month) AS month_before,
        LEAD(activity_month) OVER (PARTITION BY user_id ORDER BY activity_month) AS month_after
    FROM facts.user_months
)
SELECT
    activity_month,
    COUNT(*) AS active_users,
    CAST(SUM(CASE WHEN month_before IS NULL THEN 1 ELSE 0 END) AS BIGINT) AS new_users,
    CAST(SUM(CASE WHEN month_before = CAST(DATEADD(month, -1, activity_month) AS DATE) THEN 1 ELSE 0 END) AS BIGINT)
        AS retained_users,
    CAST(SUM(CASE WHEN month_before < CAST(DATEADD(month, -1, activity_month) AS DATE) THEN 1 ELSE 0 END) AS BIGINT)
        AS resurrected_users,
    CAST(SUM(CASE WHEN month_after = CAST(DATEADD(month, 1, activity_month) AS DATE) THEN 0 ELSE 1 END) AS BIGINT)
        AS gone_next_month,
    CAST(SUM(events_count) AS BIGINT) AS events_count,
    CAST(SUM(points_earned) AS BIGINT) AS points_earned
FROM followed
GROUP BY activity_month
