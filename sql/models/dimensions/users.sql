-- Every user whom an event, a day, a ledger entry or a profile names.
WITH first_events AS (
    SELECT user_id, source, event_type, occurred_at
    FROM (
        SELECT
            user_id,
            source,
            event_type,
            occurred_at,
            ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY occurred_at, event_id) AS place
        FROM facts.events
    ) AS ordered
    WHERE place = 1
),
days AS (
    SELECT
        user_id,
        MIN(activity_date) AS first_active_date,
        MAX(activity_date) AS last_active_date,
        COUNT(*) AS active_days
    FROM facts.daily_activity
    GROUP BY user_id
),
everybody AS (
    SELECT user_id FROM first_events
    UNION SELECT user_id FROM days
    UNION SELECT user_id FROM facts.ledger
    UNION SELECT user_id FROM staging.profiles
)
SELECT
    everybody.user_id,
    first_events.source AS first_source,
    first_events.event_type AS first_event_type,
    first_events.occurred_at AS first_event_at,
    days.first_active_date,
    CAST(DATE_TRUNC('month', days.first_active_date) AS DATE) AS cohort_month,
    days.last_active_date,
    COALESCE(days.active_days, 0) AS active_days,
    profiles.timezone,
    profiles.current_streak,
    profiles.longest_streak,
    profiles.total_bestie_points,
    profiles.balance
FROM everybody
LEFT JOIN first_events ON first_events.user_id = everybody.user_id
LEFT JOIN days ON days.user_id = everybody.user_id
LEFT JOIN staging.profiles AS profiles ON profiles.user_id = everybody.user_id
