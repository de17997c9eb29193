-- Generated from rules/lake by `make models`: one column for each field of daily_activity.
SELECT
    user_id,
    activity_date,
    first_event_id,
    events_count,
    points_earned,
    points_by_type,
    ledger_head,
    created_at,
    load_number
FROM lake.daily_activity
