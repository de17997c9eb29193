-- Generated from rules/book/shipped.json by `make models`.
-- The items of all versions of the book. The shipped book is version 1 while the lake has no version 1.
WITH shipped AS (
    SELECT 'event_type/APP_OPENED' AS item, 'event_type' AS kind, 'APP_OPENED' AS event_type, 1 AS points, 1 AS cap_points, 'day' AS per, 'anybody' AS declared_by, TRUE AS keeps_streak, CAST(NULL AS VARCHAR(512)) AS event_types, CAST(NULL AS VARCHAR(512)) AS name, CAST(NULL AS VARCHAR(512)) AS need, CAST(NULL AS BIGINT) AS at_least, CAST(NULL AS VARCHAR(512)) AS streak, CAST(NULL AS VARCHAR(512)) AS combined, CAST(NULL AS BOOLEAN) AS of_history, CAST(NULL AS BOOLEAN) AS stays
    UNION ALL SELECT 'event_type/CHALLENGE_COMPLETED', 'event_type', 'CHALLENGE_COMPLETED', 25, 100, 'day', 'anybody', TRUE, CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BIGINT), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BOOLEAN), CAST(NULL AS BOOLEAN)
    UNION ALL SELECT 'event_type/CHECK_IN', 'event_type', 'CHECK_IN', 5, 5, 'day', 'anybody', TRUE, CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BIGINT), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BOOLEAN), CAST(NULL AS BOOLEAN)
    UNION ALL SELECT 'event_type/CONTRIBUTION', 'event_type', 'CONTRIBUTION', 10, 100, 'day', 'anybody', TRUE, CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BIGINT), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BOOLEAN), CAST(NULL AS BOOLEAN)
    UNION ALL SELECT 'event_type/FRIEND_INVITED', 'event_type', 'FRIEND_INVITED', 50, 250, 'day', 'server', TRUE, CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BIGINT), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BOOLEAN), CAST(NULL AS BOOLEAN)
    UNION ALL SELECT 'event_type/LESSON_COMPLETED', 'event_type', 'LESSON_COMPLETED', 10, 200, 'day', 'anybody', TRUE, CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BIGINT), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BOOLEAN), CAST(NULL AS BOOLEAN)
    UNION ALL SELECT 'event_type/PURCHASE_COMPLETED', 'event_type', 'PURCHASE_COMPLETED', 20, 200, 'day', 'server', TRUE, CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BIGINT), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BOOLEAN), CAST(NULL AS BOOLEAN)
    UNION ALL SELECT 'event_type/QUESTION_ANSWERED', 'event_type', 'QUESTION_ANSWERED', 10, 150, 'day', 'server', TRUE, CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BIGINT), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BOOLEAN), CAST(NULL AS BOOLEAN)
    UNION ALL SELECT 'event_type/WORKOUT_COMPLETED', 'event_type', 'WORKOUT_COMPLETED', 15, 60, 'day', 'anybody', TRUE, CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BIGINT), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BOOLEAN), CAST(NULL AS BOOLEAN)
    UNION ALL SELECT 'streak/answering', 'streak', CAST(NULL AS VARCHAR(512)), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), 'day', CAST(NULL AS VARCHAR(512)), CAST(NULL AS BOOLEAN), 'QUESTION_ANSWERED', 'answering', 'events', 1, CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BOOLEAN), CAST(NULL AS BOOLEAN)
    UNION ALL SELECT 'achievement/answers_10/0', 'achievement', 'QUESTION_ANSWERED', CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BOOLEAN), CAST(NULL AS VARCHAR(512)), 'answers_10', 'count', 10, CAST(NULL AS VARCHAR(512)), 'all', TRUE, TRUE
    UNION ALL SELECT 'achievement/answers_100/0', 'achievement', 'QUESTION_ANSWERED', CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BOOLEAN), CAST(NULL AS VARCHAR(512)), 'answers_100', 'count', 100, CAST(NULL AS VARCHAR(512)), 'all', TRUE, TRUE
    UNION ALL SELECT 'achievement/answers_1000/0', 'achievement', 'QUESTION_ANSWERED', CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BOOLEAN), CAST(NULL AS VARCHAR(512)), 'answers_1000', 'count', 1000, CAST(NULL AS VARCHAR(512)), 'all', TRUE, TRUE
    UNION ALL SELECT 'achievement/first_answer/0', 'achievement', 'QUESTION_ANSWERED', CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BOOLEAN), CAST(NULL AS VARCHAR(512)), 'first_answer', 'count', 1, CAST(NULL AS VARCHAR(512)), 'all', TRUE, TRUE
    UNION ALL SELECT 'achievement/streak_100/0', 'achievement', CAST(NULL AS VARCHAR(512)), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BOOLEAN), CAST(NULL AS VARCHAR(512)), 'streak_100', 'streak', 100, 'answering', 'all', TRUE, TRUE
    UNION ALL SELECT 'achievement/streak_30/0', 'achievement', CAST(NULL AS VARCHAR(512)), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BOOLEAN), CAST(NULL AS VARCHAR(512)), 'streak_30', 'streak', 30, 'answering', 'all', TRUE, TRUE
    UNION ALL SELECT 'achievement/streak_7/0', 'achievement', CAST(NULL AS VARCHAR(512)), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS VARCHAR(512)), CAST(NULL AS VARCHAR(512)), CAST(NULL AS BOOLEAN), CAST(NULL AS VARCHAR(512)), 'streak_7', 'streak', 7, 'answering', 'all', TRUE, TRUE
)
SELECT
    version,
    effective_at,
    published_at,
    author,
    note,
    item,
    kind,
    event_type,
    points,
    cap_points,
    cap_events,
    per,
    declared_by,
    keeps_streak,
    since,
    until,
    factor,
    event_types,
    name,
    need,
    at_least,
    property,
    covered_by,
    streak,
    combined,
    of_history,
    stays
FROM staging.rules
WHERE kind <> 'book'
UNION ALL
SELECT
    1 AS version,
    TIMESTAMP '1970-01-01 00:00:00.000000' AS effective_at,
    TIMESTAMP '1970-01-01 00:00:00.000000' AS published_at,
    'streakline' AS author,
    'as shipped' AS note,
    item,
    kind,
    event_type,
    points,
    cap_points,
    CAST(NULL AS BIGINT) AS cap_events,
    per,
    declared_by,
    keeps_streak,
    CAST(NULL AS TIMESTAMP) AS since,
    CAST(NULL AS TIMESTAMP) AS until,
    CAST(NULL AS BIGINT) AS factor,
    event_types,
    name,
    need,
    at_least,
    CAST(NULL AS VARCHAR(512)) AS property,
    CAST(NULL AS VARCHAR(512)) AS covered_by,
    streak,
    combined,
    of_history,
    stays
FROM shipped
CROSS JOIN (SELECT COUNT(*) AS stored FROM staging.rules WHERE version = 1) AS first_version
WHERE first_version.stored = 0
