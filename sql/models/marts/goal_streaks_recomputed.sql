-- Each streak that a book declares, as a night folded it by the rules (rules/engagement/goals.py).
--
-- Users meet numbers by how many streaks they have: joined by less-than, each would meet every number.
WITH digits AS (
    SELECT 0 AS digit UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
    UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9
),
numbers AS (
    SELECT 1 + ones.digit + 10 * tens.digit + 100 * hundreds.digit AS n
    FROM digits AS ones
    CROSS JOIN digits AS tens
    CROSS JOIN digits AS hundreds
),
goals AS (
    SELECT user_id, streaks, LENGTH(streaks) - LENGTH(REPLACE(streaks, ',', '')) + 1 AS entries
    FROM staging.user_goals
    WHERE streaks IS NOT NULL
),
places AS (
    SELECT ends.entries, numbers.n
    FROM (SELECT DISTINCT entries FROM goals) AS ends
    INNER JOIN numbers ON numbers.n <= ends.entries
),
listed AS (
    SELECT goals.user_id, SPLIT_PART(goals.streaks, ',', places.n) AS streak
    FROM goals
    INNER JOIN places ON places.entries = goals.entries
)
SELECT
    user_id,
    SPLIT_PART(streak, ' ', 1) AS name,
    SPLIT_PART(streak, ' ', 2) AS per,
    CAST(SPLIT_PART(streak, ' ', 3) AS DATE) AS last_reached,
    CAST(SPLIT_PART(streak, ' ', 4) AS BIGINT) AS current_streak,
    CAST(SPLIT_PART(streak, ' ', 5) AS BIGINT) AS longest_streak,
    CAST(SPLIT_PART(streak, ' ', 6) AS BIGINT) AS periods_reached,
    CAST(SPLIT_PART(streak, ' ', 7) AS BIGINT) AS freezes_used
FROM listed
