-- Every user whom an event, a day, a ledger entry or a profile names.
WITH first_events AS (
    SELECT user_id, first_source AS source, first_event_type AS event_type, first_event_at AS occurred_at
    FROM (
        SELECT
            user_id,
            first_source,
            first_event_type,
            first_event_at,
            ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY first_event_at, first_event_id) AS place
        FROM facts.user_event_months
    ) AS ordered
    WHERE place = 1
),
days AS (
    SELECT
        user_id,
        MIN(first_date) AS first_active_date,
        MAX(last_date) AS last_active_date,
        CAST(SUM(active_days) AS BIGINT) AS active_days
    FROM facts.user_months
    GROUP BY user_id
),
everybody AS (
    SELECT user_id FROM first_events
    UNION SELECT user_id FROM days
    UNION SELECT user_id FROM facts.user_ledger_months
    UNION SELECT user_id FROM facts.profiles
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
    profiles.lapses_at,
    profiles.longest_streak,
    profiles.total_bestie_points,
    profiles.balance
FROM everybody
LEFT JOIN first_events ON first_events.user_id = everybody.user_id
LEFT JOIN days ON days.user_id = everybody.user_id
LEFT JOIN facts.profiles AS profiles ON profiles.user_id = everybody.user_id
