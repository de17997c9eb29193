-- Generated from rules/lake by `make models`: one column for each field of events.
SELECT
    event_id,
    user_id,
    idempotency_key,
    event_type,
    occurred_at,
    occurred_local,
    activity_date,
    zone,
    timezone,
    points_awarded,
    source,
    properties,
    properties_ref,
    created_at,
    version,
    rules_version,
    cap,
    is_passive,
    load_number
FROM lake.events
