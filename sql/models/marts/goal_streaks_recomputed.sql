-- Each streak that a book declares, as it was after the newest period that was reached.
SELECT
    user_id,
    name,
    per,
    MAX(period_start) AS last_reached,
    CAST(MAX(CASE WHEN place = 1 THEN streak_length END) AS BIGINT) AS current_streak,
    CAST(MAX(streak_length) AS BIGINT) AS longest_streak,
    CAST(COUNT(*) AS BIGINT) AS periods_reached,
    CAST(MAX(freezes_used) AS BIGINT) AS freezes_used
FROM (
    SELECT
        user_id,
        name,
        per,
        period_start,
        streak_length,
        freezes_used,
        ROW_NUMBER() OVER (PARTITION BY user_id, name ORDER BY period_start DESC) AS place
    FROM marts.goal_periods
) AS periods
GROUP BY user_id, name, per
