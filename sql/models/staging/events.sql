-- Events as loaded, with their day and hour in UTC.
SELECT
    event_id,
    user_id,
    idempotency_key,
    event_type,
    occurred_at,
    occurred_local,
    activity_date,
    zone,
    points_awarded,
    source,
    properties,
    properties_ref,
    created_at,
    version,
    load_number
FROM lake.events
