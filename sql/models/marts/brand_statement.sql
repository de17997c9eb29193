-- What each brand's rewards came to in a month (UTC), for invoices. A reversal counts in the month in which it was
-- made, so a month that has been invoiced stays as it was.
SELECT
    brand,
    CAST(DATE_TRUNC('month', created_at) AS DATE) AS month_start,
    CAST(SUM(CASE WHEN kind = 'REDEEM' THEN 1 ELSE 0 END) AS BIGINT) AS redemptions,
    CAST(SUM(CASE WHEN kind = 'REDEEM' THEN -points ELSE 0 END) AS BIGINT) AS points,
    CAST(SUM(CASE WHEN kind = 'REVERSE' THEN 1 ELSE 0 END) AS BIGINT) AS reversals,
    CAST(SUM(CASE WHEN kind = 'REVERSE' THEN points ELSE 0 END) AS BIGINT) AS points_reversed,
    CAST(SUM(-points) AS BIGINT) AS points_net
FROM facts.ledger
WHERE brand IS NOT NULL
GROUP BY brand, CAST(DATE_TRUNC('month', created_at) AS DATE)
