SELECT
    user_id,
    created_at,
    entry_date,
    seq,
    kind,
    points,
    balance,
    event_id,
    event_type,
    activity_date,
    reward_id,
    reverses,
    freeze_note,
    freeze_date,
    load_number
FROM staging.ledger
