-- Generated from rules/lake by `make models`: one column for each field of notifications.
SELECT
    phone,
    message,
    claimed_at,
    question_id,
    outcome,
    settled_at,
    version,
    load_number
FROM lake.notifications
