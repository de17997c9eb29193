-- Generated from rules/lake by `make models`: a column a field of the entity ledger.
-- The opening entry has no time of its own (1970-01-01): it moves nothing and belongs to no day.
-- `reverses` is the place of the entry that is undone, as text; anything else is no place.
SELECT
    account_id AS user_id,
    created_at,
    CASE WHEN seq = 0 THEN NULL ELSE CAST(created_at AS DATE) END AS entry_date,
    seq,
    kind,
    points,
    balance,
    event_id,
    event_type,
    activity_date,
    reward_id,
    CASE WHEN reverses ~ '^[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9][.][0-9]{6}Z$'
        THEN CAST(REPLACE(REPLACE(reverses, 'T', ' '), 'Z', '') AS TIMESTAMP) END AS reverses,
    "freeze" AS freeze_note,
    freeze_date,
    load_number
FROM lake.ledger
