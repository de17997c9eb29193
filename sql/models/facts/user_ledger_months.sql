-- What is asked of an account's whole ledger, by month. Entries follow each other in time as in seq, so that a month
-- begins with the balance with which the one before has ended. The opening entry is in January 1970.
WITH followed AS (
    SELECT
        user_id,
        CAST(DATE_TRUNC('month', created_at) AS DATE) AS entry_month,
        seq,
        kind,
        points,
        balance,
        ROW_NUMBER() OVER (PARTITION BY user_id, DATE_TRUNC('month', created_at) ORDER BY seq) AS place,
        ROW_NUMBER() OVER (PARTITION BY user_id, DATE_TRUNC('month', created_at) ORDER BY seq DESC) AS from_the_end,
        LAG(balance) OVER (PARTITION BY user_id, DATE_TRUNC('month', created_at) ORDER BY seq) AS balance_before
    FROM facts.ledger
)
SELECT
    user_id,
    entry_month,
    COUNT(*) AS entries,
    MAX(seq) AS last_seq,
    CAST(SUM(points) AS BIGINT) AS points,
    CAST(SUM(CASE WHEN kind IN ('EARN', 'CLAWBACK', 'RERATE', 'BONUS') THEN points ELSE 0 END) AS BIGINT) AS points_earned,
    CAST(SUM(CASE WHEN place = 1 OR balance = balance_before + points THEN 0 ELSE 1 END) AS BIGINT) AS wrong_balances,
    MAX(CASE WHEN place = 1 THEN balance - points END) AS balance_before,
    MAX(CASE WHEN from_the_end = 1 THEN balance END) AS balance
FROM followed
GROUP BY user_id, entry_month
