-- How many missed dates users have repaired in a month (UTC), and what was given back, because a late event has made
-- the repair needless, or somebody has reversed it. That counts in its own month, so a past month stays as it was.
SELECT
    CAST(DATE_TRUNC('month', created_at) AS DATE) AS month_start,
    CAST(SUM(CASE WHEN kind = 'REDEEM' THEN 1 ELSE 0 END) AS BIGINT) AS repaired_dates,
    COUNT(DISTINCT CASE WHEN kind = 'REDEEM' THEN user_id END) AS users,
    CAST(SUM(CASE WHEN kind = 'REDEEM' THEN -points ELSE 0 END) AS BIGINT) AS points,
    CAST(SUM(CASE WHEN kind = 'REVERSE' THEN 1 ELSE 0 END) AS BIGINT) AS given_back_dates,
    CAST(SUM(CASE WHEN kind = 'REVERSE' THEN points ELSE 0 END) AS BIGINT) AS points_given_back
FROM facts.ledger
WHERE reward_id = 'streak_repair' AND freeze_note IS NOT NULL
GROUP BY CAST(DATE_TRUNC('month', created_at) AS DATE)
