-- Generated from rules/lake by `make models`: one column for each field of ledger.
-- The opening entry has 0 points and no time of its own (1970-01-01), so its entry_date is NULL.
-- `reverses` is the place of the entry that is undone. The lake has it as text; other text is NULL.
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
    rules_version,
    cap,
    is_passive,
    expires_on,
    held_at,
    reason,
    brand,
    measures,
    seal,
    load_number
FROM lake.ledger
