-- What covers missed dates, by the month in which it was told: freezes by their ledger entries, pauses by every version
-- of a profile that lists them. (Newer versions may have put a pause away. What the newest one lists is in
-- facts.profiles.)
WITH
digits AS (
    SELECT 0 AS digit UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
    UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9
),
numbers AS (
    SELECT 1 + ones.digit + 10 * tens.digit + 100 * hundreds.digit + 1000 * thousands.digit AS n
    FROM digits AS ones
    CROSS JOIN digits AS tens
    CROSS JOIN digits AS hundreds
    CROSS JOIN digits AS thousands
),
listed AS (
    SELECT DISTINCT
        user_id,
        CAST(DATE_TRUNC('month', updated_at) AS DATE) AS told_month,
        pauses
    FROM lake.streaks
    WHERE pauses <> ''
),
pauses AS (
    SELECT listed.user_id, listed.told_month, SPLIT_PART(listed.pauses, ',', numbers.n) AS pause
    FROM listed
    INNER JOIN numbers
        ON numbers.n <= LENGTH(listed.pauses) - LENGTH(REPLACE(listed.pauses, ',', '')) + 1
)
SELECT DISTINCT
    user_id,
    told_month,
    'pause' AS kind,
    CAST(SPLIT_PART(pause, '/', 1) AS DATE) AS first_date,
    CAST(SPLIT_PART(pause, '/', 2) AS DATE) AS last_date,
    CAST(0 AS BIGINT) AS freezes
FROM pauses
UNION ALL
SELECT
    user_id,
    CAST(DATE_TRUNC('month', created_at) AS DATE) AS told_month,
    'freeze' AS kind,
    freeze_date AS first_date,
    freeze_date AS last_date,
    CAST(SUM(CASE WHEN freeze_note = 'freeze_granted' THEN 1 ELSE -1 END) AS BIGINT) AS freezes
FROM facts.ledger
WHERE freeze_note IN ('freeze_granted', 'freeze_revoked') AND freeze_date IS NOT NULL
GROUP BY user_id, CAST(DATE_TRUNC('month', created_at) AS DATE), freeze_date
