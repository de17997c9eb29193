-- A redemption has the load number of its reversal if that is greater. So a reversal in a later load makes the
-- incremental build read the redemption again.
SELECT
    spent.user_id,
    spent.created_at,
    spent.entry_date AS redemption_date,
    spent.reward_id,
    spent.brand,
    -spent.points AS points,
    CASE WHEN undone.created_at IS NULL THEN FALSE ELSE TRUE END AS is_reversed,
    undone.created_at AS reversed_at,
    undone.entry_date AS reversal_date,
    CASE WHEN undone.load_number > spent.load_number THEN undone.load_number ELSE spent.load_number END AS load_number
FROM staging.ledger AS spent
LEFT JOIN staging.ledger AS undone
    ON undone.user_id = spent.user_id
    AND undone.reverses = spent.created_at
    AND undone.kind = 'REVERSE'
WHERE spent.kind = 'REDEEM'
