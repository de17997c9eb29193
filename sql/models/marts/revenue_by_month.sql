-- Months are those of the buyer's own calendar (activity_date). A purchase whose amount cannot be read is counted,
-- and adds nothing to the revenue.
SELECT
    CAST(DATE_TRUNC('month', activity_date) AS DATE) AS month_start,
    COUNT(*) AS purchases,
    COUNT(DISTINCT user_id) AS buyers,
    CAST(SUM(COALESCE(quantity, 0)) AS BIGINT) AS quantity,
    CAST(SUM(COALESCE(amount, 0)) AS DECIMAL(38, 2)) AS revenue,
    CAST(SUM(CASE WHEN amount IS NULL THEN 1 ELSE 0 END) AS BIGINT) AS unreadable_amounts
FROM facts.events
WHERE event_type = 'PURCHASE_COMPLETED'
GROUP BY CAST(DATE_TRUNC('month', activity_date) AS DATE)
