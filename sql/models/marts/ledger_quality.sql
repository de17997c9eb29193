-- A sound account has entries 0, 1, 2 ... without a gap. Each balance is the balance before it plus the points.
WITH followed AS (
    SELECT
        user_id,
        seq,
        points,
        balance,
        ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY seq DESC) AS from_the_end,
        LAG(balance) OVER (PARTITION BY user_id ORDER BY seq) AS balance_before
    FROM facts.ledger
)
SELECT
    user_id,
    COUNT(*) AS entries,
    MAX(seq) + 1 - COUNT(*) AS missing_entries,
    CAST(SUM(CASE WHEN balance = COALESCE(balance_before, 0) + points THEN 0 ELSE 1 END) AS BIGINT) AS wrong_balances,
    CAST(SUM(points) AS BIGINT) AS points,
    MAX(CASE WHEN from_the_end = 1 THEN balance END) AS balance
FROM followed
GROUP BY user_id
