-- Makes numbers by a cross join, because Redshift's generate_series runs only on the leader and cannot be joined
-- with tables.
WITH digits AS (
    SELECT 0 AS n
    UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
    UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9
),
numbers AS (
    SELECT ones.n + 10 * tens.n + 100 * hundreds.n + 1000 * thousands.n + 10000 * rest.n AS n
    FROM digits AS ones
    CROSS JOIN digits AS tens
    CROSS JOIN digits AS hundreds
    CROSS JOIN digits AS thousands
    CROSS JOIN digits AS rest
),
known AS (
    SELECT MIN(activity_date) AS first_date, MAX(activity_date) AS last_date FROM facts.activity_totals
    UNION ALL SELECT MIN(entry_date), MAX(entry_date) FROM facts.ledger_totals
    UNION ALL SELECT MIN(first_activity_date), MAX(last_activity_date) FROM facts.event_totals
    UNION ALL SELECT MIN(occurred_date), MAX(occurred_date) FROM facts.event_totals
    UNION ALL SELECT MIN(dt), MAX(dt) FROM facts.loaded_rows WHERE entity = 'lead_events'
    UNION ALL SELECT MIN(dt), MAX(dt) FROM staging.curation WHERE curated > 0
),
span AS (
    SELECT MIN(first_date) AS first_date, MAX(last_date) AS last_date FROM known
),
days AS (
    SELECT CAST(DATEADD(day, numbers.n, span.first_date) AS DATE) AS date_day
    FROM span
    CROSS JOIN numbers
    WHERE numbers.n <= DATEDIFF(day, span.first_date, span.last_date)
)
SELECT
    date_day,
    CAST(EXTRACT(year FROM date_day) AS INTEGER) AS calendar_year,
    CAST(EXTRACT(quarter FROM date_day) AS INTEGER) AS calendar_quarter,
    CAST(EXTRACT(month FROM date_day) AS INTEGER) AS calendar_month,
    CAST(DATE_TRUNC('month', date_day) AS DATE) AS month_start,
    CAST(DATE_TRUNC('week', date_day) AS DATE) AS week_start,
    CAST(EXTRACT(dow FROM date_day) AS INTEGER) AS weekday,
    CASE WHEN EXTRACT(dow FROM date_day) IN (0, 6) THEN TRUE ELSE FALSE END AS is_weekend
FROM days
