SELECT
    user_id,
    activity_date,
    first_event_id,
    events_count,
    points_earned,
    points_by_type,
    created_at,
    load_number
FROM lake.daily_activity
