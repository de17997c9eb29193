-- Generated from rules/lake by `make models`: one column for each field of streaks.
-- The newest version of each user's profile.
SELECT
    user_id,
    version,
    COALESCE(current_streak, 0) AS current_streak,
    COALESCE(longest_streak, 0) AS longest_streak,
    last_activity_date,
    COALESCE(active_days, 0) AS active_days,
    freezes_spent,
    total_bestie_points,
    balance,
    ledger_head,
    ledger_seq,
    timezone,
    timezone_chosen,
    freezes,
    pauses,
    skipped_dates,
    leaderboard_partition,
    lapses_at,
    COALESCE(tz_review, FALSE) AS tz_review,
    updated_at,
    freezes_archived,
    archived_until,
    opening,
    load_number
FROM (
    SELECT
        v.*,
        ROW_NUMBER() OVER (PARTITION BY v.user_id ORDER BY v.version DESC) AS place
    FROM lake.streaks AS v
) AS versions
WHERE place = 1
