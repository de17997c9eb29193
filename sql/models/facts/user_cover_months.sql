-- What covers missed dates, by the month of the ledger's entry: freezes, pauses, and chosen rest days.
SELECT DISTINCT
    user_id,
    CAST(DATE_TRUNC('month', created_at) AS DATE) AS told_month,
    'pause' AS kind,
    CAST(SPLIT_PART(set_to, '/', 1) AS DATE) AS first_date,
    CAST(SPLIT_PART(set_to, '/', 2) AS DATE) AS last_date,
    CAST(0 AS BIGINT) AS freezes,
    CAST(NULL AS VARCHAR(64)) AS weekdays
FROM facts.ledger
WHERE setting = 'pause'
UNION ALL
SELECT DISTINCT
    user_id,
    CAST(DATE_TRUNC('month', created_at) AS DATE) AS told_month,
    'rest_days' AS kind,
    CAST(SPLIT_PART(set_to, ' ', 1) AS DATE) AS first_date,
    CAST(SPLIT_PART(set_to, ' ', 1) AS DATE) AS last_date,
    CAST(0 AS BIGINT) AS freezes,
    CAST(SUBSTRING(set_to, 12, 64) AS VARCHAR(64)) AS weekdays
FROM facts.ledger
WHERE setting = 'rest_days'
UNION ALL
SELECT
    user_id,
    CAST(DATE_TRUNC('month', created_at) AS DATE) AS told_month,
    'freeze' AS kind,
    freeze_date AS first_date,
    freeze_date AS last_date,
    CAST(SUM(CASE WHEN freeze_note = 'freeze_granted' THEN 1 ELSE -1 END) AS BIGINT) AS freezes,
    CAST(NULL AS VARCHAR(64)) AS weekdays
FROM facts.ledger
WHERE freeze_note IN ('freeze_granted', 'freeze_revoked') AND freeze_date IS NOT NULL
GROUP BY user_id, CAST(DATE_TRUNC('month', created_at) AS DATE), freeze_date
