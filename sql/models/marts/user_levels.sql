-- Which level of the book of rules each user has reached, as the profile shows it: by all points ever earned, as the
-- ledger has them, and by the version in force at the newest instant that the warehouse knows of
-- (dimensions.event_types).
WITH earned AS (
    SELECT user_id, CAST(SUM(points_earned) AS BIGINT) AS points_earned
    FROM facts.user_ledger_months
    GROUP BY user_id
),
in_force AS (
    SELECT MAX(rules_version) AS version FROM dimensions.event_types
),
levels AS (
    SELECT
        items.name,
        items.title,
        items.at_least AS level_from,
        LEAD(items.name) OVER (ORDER BY items.at_least) AS next_level,
        LEAD(items.at_least) OVER (ORDER BY items.at_least) AS next_from
    FROM staging.rule_book AS items
    INNER JOIN in_force ON in_force.version = items.version
    WHERE items.kind = 'level'
)
SELECT
    earned.user_id,
    earned.points_earned,
    levels.name AS level_name,
    levels.title AS level_title,
    levels.level_from,
    levels.next_level,
    levels.next_from - earned.points_earned AS points_missing
FROM earned
LEFT JOIN levels
    ON levels.level_from <= earned.points_earned
    AND (levels.next_from IS NULL OR levels.next_from > earned.points_earned)
