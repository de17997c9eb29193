-- How many rows came in by day, what became of them, and how many the warehouse has (of the ledger nobody can tell).
-- A month of the past that has one file is one row, under its first date.
WITH files AS (
    SELECT
        entity,
        dt,
        MAX(CAST(CASE WHEN hour = 'all' THEN DATEADD(month, 1, dt) ELSE DATEADD(day, 1, dt) END AS DATE)) AS next_dt,
        CAST(SUM(rows_in) AS BIGINT) AS rows_in,
        CAST(SUM(curated) AS BIGINT) AS curated,
        CAST(SUM(duplicates) AS BIGINT) AS duplicates,
        CAST(SUM(quarantined) AS BIGINT) AS quarantined
    FROM staging.curation
    GROUP BY entity, dt
    HAVING SUM(rows_in) > 0
),
in_warehouse AS (
    SELECT files.entity, files.dt, CAST(SUM(loaded.loaded) AS BIGINT) AS loaded
    FROM files
    INNER JOIN facts.loaded_rows AS loaded
        ON loaded.entity = files.entity AND loaded.dt >= files.dt AND loaded.dt < files.next_dt
    GROUP BY files.entity, files.dt
)
SELECT
    files.entity,
    files.dt,
    files.rows_in,
    files.curated,
    files.duplicates,
    files.quarantined,
    files.rows_in - files.curated - files.duplicates - files.quarantined AS unexplained,
    CASE WHEN files.entity <> 'ledger' THEN COALESCE(in_warehouse.loaded, 0) END AS loaded
FROM files
LEFT JOIN in_warehouse ON in_warehouse.entity = files.entity AND in_warehouse.dt = files.dt
