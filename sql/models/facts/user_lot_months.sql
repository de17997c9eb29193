-- What an account earned, or was given by hand, by the month in which it expires. What never expires is under 9999-12-01.
SELECT
    user_id,
    CAST(DATE_TRUNC('month', created_at) AS DATE) AS entry_month,
    CAST(DATE_TRUNC('month', COALESCE(expires_on, DATE '9999-12-01')) AS DATE) AS expiry_month,
    CAST(SUM(points) AS BIGINT) AS points
FROM facts.ledger
WHERE kind IN ('EARN', 'CLAWBACK', 'RERATE', 'ADJUST', 'BONUS')
GROUP BY
    user_id,
    CAST(DATE_TRUNC('month', created_at) AS DATE),
    CAST(DATE_TRUNC('month', COALESCE(expires_on, DATE '9999-12-01')) AS DATE)
