-- What liability needs of a date's entries. The opening entry of an account has no date, and no points.
-- An entry's points have the sign of what they do to the balance. `change` keeps it, and so do issued, reversed, adjusted,
-- rerated and bonuses; redeemed, expired and clawed_back are what was taken away, so above 0.
SELECT
    entry_date,
    COUNT(*) AS entries,
    CAST(SUM(CASE WHEN kind = 'EARN' THEN points ELSE 0 END) AS BIGINT) AS issued,
    CAST(SUM(CASE WHEN kind = 'REDEEM' THEN -points ELSE 0 END) AS BIGINT) AS redeemed,
    CAST(SUM(CASE WHEN kind = 'REVERSE' THEN points ELSE 0 END) AS BIGINT) AS reversed,
    CAST(SUM(CASE WHEN kind = 'EXPIRE' THEN -points ELSE 0 END) AS BIGINT) AS expired,
    CAST(SUM(CASE WHEN kind = 'ADJUST' THEN points ELSE 0 END) AS BIGINT) AS adjusted,
    CAST(SUM(CASE WHEN kind = 'CLAWBACK' THEN -points ELSE 0 END) AS BIGINT) AS clawed_back,
    CAST(SUM(CASE WHEN kind = 'RERATE' THEN points ELSE 0 END) AS BIGINT) AS rerated,
    CAST(SUM(CASE WHEN kind = 'BONUS' THEN points ELSE 0 END) AS BIGINT) AS bonuses,
    CAST(SUM(points) AS BIGINT) AS change
FROM facts.ledger
WHERE entry_date IS NOT NULL
GROUP BY entry_date
