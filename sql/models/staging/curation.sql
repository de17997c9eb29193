-- Before strays were told apart, they were counted under a date of the year 1, which no row has.
SELECT
    entity,
    dt,
    hour,
    rows_in,
    curated,
    duplicates,
    quarantined
FROM lake.curation
WHERE dt >= DATE '1970-01-01'
