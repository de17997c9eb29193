SELECT
    user_id,
    activity_date,
    CAST(DATE_TRUNC('month', activity_date) AS DATE) AS activity_month,
    first_event_id,
    events_count,
    points_earned,
    created_at,
    load_number
FROM staging.daily_activity
