-- Outstanding points are what the company owes at a day's end: the sum of all entries up to then.
WITH span AS (
    SELECT MIN(entry_date) AS first_date, MAX(entry_date) AS last_date FROM facts.ledger_totals
)
SELECT
    dates.date_day,
    COALESCE(totals.issued, 0) AS issued,
    COALESCE(totals.redeemed, 0) AS redeemed,
    COALESCE(totals.reversed, 0) AS reversed,
    COALESCE(totals.expired, 0) AS expired,
    COALESCE(totals.adjusted, 0) AS adjusted,
    COALESCE(totals.clawed_back, 0) AS clawed_back,
    COALESCE(totals.rerated, 0) AS rerated,
    COALESCE(totals.bonuses, 0) AS bonuses,
    CAST(SUM(COALESCE(totals.change, 0)) OVER (ORDER BY dates.date_day ROWS UNBOUNDED PRECEDING) AS BIGINT)
        AS outstanding
FROM dimensions.dates AS dates
INNER JOIN span ON dates.date_day BETWEEN span.first_date AND span.last_date
LEFT JOIN facts.ledger_totals AS totals ON totals.entry_date = dates.date_day
