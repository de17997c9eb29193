-- Which users have which achievements of the book, as a night folded them by the rules
-- (rules/engagement/achievements.py). What was shown and stays although it is no longer true is not here.
--
-- Users meet numbers by how many achievements they have: joined by less-than, each would meet every number.
WITH digits AS (
    SELECT 0 AS digit UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
    UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9
),
numbers AS (
    SELECT 1 + ones.digit + 10 * tens.digit AS n FROM digits AS ones CROSS JOIN digits AS tens
),
goals AS (
    SELECT user_id, achievements, LENGTH(achievements) - LENGTH(REPLACE(achievements, ',', '')) + 1 AS entries
    FROM staging.user_goals
    WHERE achievements IS NOT NULL
),
places AS (
    SELECT ends.entries, numbers.n
    FROM (SELECT DISTINCT entries FROM goals) AS ends
    INNER JOIN numbers ON numbers.n <= ends.entries
),
listed AS (
    SELECT goals.user_id, SPLIT_PART(goals.achievements, ',', places.n) AS achievement
    FROM goals
    INNER JOIN places ON places.entries = goals.entries
),
split AS (
    SELECT
        user_id,
        SPLIT_PART(achievement, ' ', 1) AS name,
        SPLIT_PART(achievement, ' ', 3) AS event_id,
        CAST(SPLIT_PART(achievement, ' ', 2) AS DATE) AS activity_date
    FROM listed
)
SELECT
    user_id,
    name,
    event_id,
    CASE WHEN event_id ~ '^[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z([.][0-9]{6})?#'
        THEN CAST(REPLACE(REPLACE(SPLIT_PART(event_id, '#', 1), 'T', ' '), 'Z', '') AS TIMESTAMP)
    END AS achieved_at,
    activity_date
FROM split
