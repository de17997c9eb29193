-- Each event type of the book of rules, with what the version in force says of it, and each that has left the book.
-- In force means: at the newest instant that the warehouse knows of, an event's or a publication's.
WITH known AS (
    SELECT MAX(last_occurred_at) AS known_at FROM facts.event_totals
    UNION ALL
    SELECT MAX(published_at) AS known_at FROM dimensions.event_type_versions
),
latest AS (
    SELECT MAX(known_at) AS as_of FROM known
),
rules AS (
    SELECT
        versions.version,
        versions.event_type,
        versions.points,
        versions.points_of,
        versions.points_each,
        versions.points_earned,
        versions.cap,
        versions.per,
        versions.keeps_streak
    FROM dimensions.event_type_versions AS versions
    CROSS JOIN latest
    WHERE versions.effective_from <= latest.as_of
        AND (versions.effective_to IS NULL OR versions.effective_to > latest.as_of)
),
seen AS (
    SELECT event_type FROM facts.event_totals
    UNION
    SELECT event_type FROM dimensions.event_type_versions
)
SELECT
    seen.event_type,
    rules.points,
    rules.points_of,
    rules.points_each,
    rules.points_earned,
    CASE WHEN rules.per = 'day' THEN rules.cap END AS daily_cap,
    CASE WHEN rules.per = 'week' THEN rules.cap END AS weekly_cap,
    rules.keeps_streak,
    rules.version AS rules_version,
    CASE WHEN rules.event_type IS NULL THEN FALSE ELSE TRUE END AS is_current
FROM seen
LEFT JOIN rules ON rules.event_type = seen.event_type
