-- What each user's events earn by the book of rules, recomputed for all versions, beside what the ledger has.
SELECT
    user_id,
    CAST(SUM(entries) AS BIGINT) AS entries,
    CAST(SUM(unmatched_entries) AS BIGINT) AS unmatched_entries,
    CAST(SUM(points_by_book) AS BIGINT) AS points_by_book,
    CAST(SUM(points_by_events) AS BIGINT) AS points_by_events,
    CAST(SUM(points_in_ledger) AS BIGINT) AS points_in_ledger,
    CAST(
        SUM(CASE WHEN points_by_book = points_in_ledger AND points_by_events = points_in_ledger THEN 0 ELSE 1 END)
        AS BIGINT
    ) AS differing_weeks
FROM facts.user_point_weeks
GROUP BY user_id
