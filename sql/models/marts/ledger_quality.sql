-- A sound account has entries 0, 1, 2 ... without a gap. Each balance is the balance before it plus the points.
WITH followed AS (
    SELECT
        user_id,
        entries,
        last_seq,
        wrong_balances,
        points,
        balance_before,
        balance,
        LAG(balance) OVER (PARTITION BY user_id ORDER BY entry_month) AS balance_of_month_before,
        ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY entry_month DESC) AS from_the_end
    FROM facts.user_ledger_months
)
SELECT
    user_id,
    CAST(SUM(entries) AS BIGINT) AS entries,
    CAST(MAX(last_seq) + 1 - SUM(entries) AS BIGINT) AS missing_entries,
    CAST(
        SUM(wrong_balances + CASE WHEN balance_before = COALESCE(balance_of_month_before, 0) THEN 0 ELSE 1 END)
        AS BIGINT
    ) AS wrong_balances,
    CAST(SUM(points) AS BIGINT) AS points,
    MAX(CASE WHEN from_the_end = 1 THEN balance END) AS balance
FROM followed
GROUP BY user_id
