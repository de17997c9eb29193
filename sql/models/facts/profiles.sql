-- The newest version of each user's profile, kept: staging.profiles finds it among all versions, each time.
SELECT
    user_id,
    version,
    COALESCE(current_streak, 0) AS current_streak,
    COALESCE(longest_streak, 0) AS longest_streak,
    COALESCE(active_days, 0) AS active_days,
    lapses_at,
    total_bestie_points,
    balance,
    timezone,
    skipped_dates,
    opening,
    updated_at,
    load_number
FROM (
    SELECT
        v.*,
        ROW_NUMBER() OVER (PARTITION BY v.user_id ORDER BY v.version DESC) AS place
    FROM lake.streaks AS v
) AS versions
WHERE place = 1
