-- Months are those of the buyer's own calendar (activity_date). A purchase whose amount cannot be read is counted,
-- and adds nothing to the revenue.
SELECT
    activity_month AS month_start,
    CAST(SUM(purchases) AS BIGINT) AS purchases,
    COUNT(DISTINCT user_id) AS buyers,
    CAST(SUM(quantity) AS BIGINT) AS quantity,
    CAST(SUM(revenue) AS DECIMAL(38, 2)) AS revenue,
    CAST(SUM(unreadable_amounts) AS BIGINT) AS unreadable_amounts
FROM facts.user_event_months
WHERE purchases > 0
GROUP BY activity_month
