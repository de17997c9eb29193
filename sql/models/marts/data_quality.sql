-- How many rows came in by day, what became of them, and how many the warehouse has (of the ledger nobody can tell).
WITH files AS (
    SELECT
        entity,
        dt,
        CAST(SUM(rows_in) AS BIGINT) AS rows_in,
        CAST(SUM(curated) AS BIGINT) AS curated,
        CAST(SUM(duplicates) AS BIGINT) AS duplicates,
        CAST(SUM(quarantined) AS BIGINT) AS quarantined
    FROM staging.curation
    GROUP BY entity, dt
    HAVING SUM(rows_in) > 0
)
SELECT
    files.entity,
    files.dt,
    files.rows_in,
    files.curated,
    files.duplicates,
    files.quarantined,
    files.rows_in - files.curated - files.duplicates - files.quarantined AS unexplained,
    CASE WHEN files.entity <> 'ledger' THEN COALESCE(loaded.loaded, 0) END AS loaded
FROM files
LEFT JOIN facts.loaded_rows AS loaded ON loaded.entity = files.entity AND loaded.dt = files.dt
