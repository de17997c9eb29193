SELECT
    entity,
    dt,
    hour,
    rows_in,
    curated,
    duplicates,
    quarantined
FROM lake.curation
