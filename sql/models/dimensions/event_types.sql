-- Generated from rules/book/shipped.json by `make models`.
-- Each event type of the rule table, and each that left the table but that older events still carry.
WITH rules AS (
    SELECT 'APP_OPENED' AS event_type, 1 AS points, 1 AS daily_cap
    UNION ALL SELECT 'CHALLENGE_COMPLETED', 25, 100
    UNION ALL SELECT 'CHECK_IN', 5, 5
    UNION ALL SELECT 'CONTRIBUTION', 10, 100
    UNION ALL SELECT 'FRIEND_INVITED', 50, 250
    UNION ALL SELECT 'LESSON_COMPLETED', 10, 200
    UNION ALL SELECT 'PURCHASE_COMPLETED', 20, 200
    UNION ALL SELECT 'QUESTION_ANSWERED', 10, 150
    UNION ALL SELECT 'WORKOUT_COMPLETED', 15, 60
),
seen AS (
    SELECT DISTINCT event_type FROM facts.event_totals
)
SELECT
    COALESCE(rules.event_type, seen.event_type) AS event_type,
    rules.points,
    rules.daily_cap,
    CASE WHEN rules.event_type IS NULL THEN FALSE ELSE TRUE END AS is_current
FROM rules
FULL OUTER JOIN seen ON seen.event_type = rules.event_type
