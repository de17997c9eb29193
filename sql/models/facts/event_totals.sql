-- What dates and event types need of a date's events, so that they need not read all events again each night.
SELECT
    occurred_date,
    event_type,
    COUNT(*) AS events,
    MIN(activity_date) AS first_activity_date,
    MAX(activity_date) AS last_activity_date,
    MAX(occurred_at) AS last_occurred_at
FROM facts.events
GROUP BY occurred_date, event_type
