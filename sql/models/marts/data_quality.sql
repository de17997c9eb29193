-- How many rows came in by day, what became of them, and how many the warehouse has. The ledger has no number of
-- loaded rows, because the opening entry of an account has no time of its own that would tell its day.
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
),
loaded AS (
    SELECT 'events' AS entity, CAST(occurred_at AS DATE) AS dt, COUNT(*) AS loaded
    FROM lake.events
    GROUP BY CAST(occurred_at AS DATE)
    UNION ALL
    SELECT 'daily_activity' AS entity, activity_date AS dt, COUNT(*) AS loaded
    FROM lake.daily_activity
    GROUP BY activity_date
    UNION ALL
    SELECT 'streaks' AS entity, CAST(updated_at AS DATE) AS dt, COUNT(*) AS loaded
    FROM lake.streaks
    GROUP BY CAST(updated_at AS DATE)
    UNION ALL
    SELECT 'lead_events' AS entity, CAST(occurred_at AS DATE) AS dt, COUNT(*) AS loaded
    FROM lake.lead_events
    GROUP BY CAST(occurred_at AS DATE)
    UNION ALL
    SELECT 'lead_memory' AS entity, CAST(updated_at AS DATE) AS dt, COUNT(*) AS loaded
    FROM lake.lead_memory
    GROUP BY CAST(updated_at AS DATE)
    UNION ALL
    SELECT 'lead_features' AS entity, CAST(changed_at AS DATE) AS dt, COUNT(*) AS loaded
    FROM lake.lead_features
    GROUP BY CAST(changed_at AS DATE)
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
LEFT JOIN loaded ON loaded.entity = files.entity AND loaded.dt = files.dt
