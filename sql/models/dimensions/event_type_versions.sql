-- What each version of the book of rules says of each event type, and when the version is in force: from its effective
-- instant until that of the next later one. Of two with the same instant the one with the higher number is in force;
-- the other one begins and ends at once.
WITH versions AS (
    SELECT
        version,
        effective_at AS effective_from,
        LEAD(effective_at) OVER (ORDER BY effective_at, version) AS effective_to
    FROM (SELECT DISTINCT version, effective_at FROM staging.rule_book) AS stored
)
SELECT
    items.version,
    items.event_type,
    versions.effective_from,
    versions.effective_to,
    items.points,
    items.property AS points_of,
    items.points_each,
    items.points_earned,
    CASE WHEN items.cap_events IS NULL THEN items.cap_points ELSE items.cap_events * items.points END AS cap,
    items.cap_events,
    items.per,
    items.declared_by,
    items.keeps_streak,
    items.published_at,
    items.author,
    items.note
FROM staging.rule_book AS items
INNER JOIN versions ON versions.version = items.version
WHERE items.kind = 'event_type'
