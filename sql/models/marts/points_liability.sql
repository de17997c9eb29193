-- Outstanding points are what the company owes at a day's end: the sum of all entries up to then.
WITH span AS (
    SELECT MIN(entry_date) AS first_date, MAX(entry_date) AS last_date FROM facts.ledger_totals
)
SELECT
    dates.date_day,
    COALESCE(moved.issued, 0) AS issued,
    COALESCE(moved.redeemed, 0) AS redeemed,
    COALESCE(moved.reversed, 0) AS reversed,
    COALESCE(moved.expired, 0) AS expired,
    COALESCE(moved.adjusted, 0) AS adjusted,
    COALESCE(moved.clawed_back, 0) AS clawed_back,
    COALESCE(moved.rerated, 0) AS rerated,
    CAST(SUM(COALESCE(moved.change, 0)) OVER (ORDER BY dates.date_day ROWS UNBOUNDED PRECEDING) AS BIGINT)
        AS outstanding
FROM dimensions.dates AS dates
INNER JOIN span ON dates.date_day BETWEEN span.first_date AND span.last_date
LEFT JOIN facts.ledger_totals AS moved ON moved.entry_date = dates.date_day
