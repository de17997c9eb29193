-- Reminders are known by phone, and the lake does not know who has which phone.
SELECT
    CAST(SUBSTRING(message, 10, 10) AS DATE) AS activity_date,
    COUNT(*) AS phones,
    CAST(SUM(CASE WHEN outcome = 'sent' THEN 1 ELSE 0 END) AS BIGINT) AS phones_reached,
    CAST(SUM(CASE WHEN outcome = 'dead' THEN 1 ELSE 0 END) AS BIGINT) AS phones_dead,
    CAST(SUM(CASE WHEN outcome = 'unconfirmed' THEN 1 ELSE 0 END) AS BIGINT) AS phones_unconfirmed,
    CAST(SUM(CASE WHEN outcome = 'sent' THEN 1 ELSE 0 END) AS DOUBLE PRECISION) / CAST(COUNT(*) AS DOUBLE PRECISION)
        AS reach
FROM staging.notifications
WHERE message LIKE 'reminder=%'
GROUP BY 1
