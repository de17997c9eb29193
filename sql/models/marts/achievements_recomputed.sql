-- Which users have which achievements of the book, as a night folded them by the rules
-- (rules/engagement/achievements.py). What was shown and stays although it is no longer true is not here.
WITH digits AS (
    SELECT 0 AS digit UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
    UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9
),
places AS (
    SELECT 1 + ones.digit + 10 * tens.digit AS place FROM digits AS ones CROSS JOIN digits AS tens
),
listed AS (
    SELECT goals.user_id, SPLIT_PART(goals.achievements, ',', places.place) AS achievement
    FROM staging.user_goals AS goals
    INNER JOIN places
        ON places.place <= LENGTH(goals.achievements) - LENGTH(REPLACE(goals.achievements, ',', '')) + 1
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
    CASE WHEN event_id ~ '^[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9][.][0-9]{6}Z#'
        THEN CAST(REPLACE(REPLACE(SUBSTRING(event_id, 1, 27), 'T', ' '), 'Z', '') AS TIMESTAMP)
    END AS achieved_at,
    activity_date
FROM split
