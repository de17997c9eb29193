-- When outstanding points expire. What is spent comes from the lot that expires first, so a balance is made of the
-- lots that expire last.
WITH lots AS (
    -- Below 0: somebody took points by hand. They are missing in the balance.
    SELECT user_id, expiry_month, GREATEST(0, SUM(points)) AS points
    FROM facts.user_lot_months
    GROUP BY user_id, expiry_month
),
ordered AS (
    SELECT
        user_id,
        expiry_month,
        points,
        COALESCE(
            SUM(points) OVER (
                PARTITION BY user_id ORDER BY expiry_month DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ),
            0
        ) AS points_later
    FROM lots
),
left_over AS (
    SELECT
        ordered.user_id,
        ordered.expiry_month,
        GREATEST(0, LEAST(ordered.points, ledger.balance - ordered.points_later)) AS points
    FROM ordered
    INNER JOIN marts.ledger_quality AS ledger ON ledger.user_id = ordered.user_id
)
SELECT expiry_month, CAST(SUM(points) AS BIGINT) AS outstanding, COUNT(*) AS users
FROM left_over
WHERE points > 0
GROUP BY expiry_month
