-- How many users reached each length. A user whose longest streak is 5 days has reached 1, 2, 3, 4 and 5. A streak that
-- was moved in may be longer than all the dates that the lake knows, so the numbers do not come from these.
WITH digits AS (
    SELECT 0 AS n
    UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
    UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9
),
lengths AS (
    SELECT longest_streak, COUNT(*) AS users
    FROM facts.profiles
    WHERE longest_streak > 0
    GROUP BY longest_streak
),
numbers AS (
    SELECT CAST(ones.n + 10 * tens.n + 100 * hundreds.n + 1000 * thousands.n + 10000 * rest.n + 1 AS BIGINT)
        AS streak_days
    FROM digits AS ones
    CROSS JOIN digits AS tens
    CROSS JOIN digits AS hundreds
    CROSS JOIN digits AS thousands
    CROSS JOIN digits AS rest
),
longest AS (
    SELECT MAX(longest_streak) AS streak_days, CAST(SUM(users) AS BIGINT) AS users FROM lengths
),
ended AS (
    SELECT
        numbers.streak_days,
        longest.users AS all_users,
        COALESCE(lengths.users, 0) AS users
    FROM numbers
    INNER JOIN longest ON numbers.streak_days <= longest.streak_days
    LEFT JOIN lengths ON lengths.longest_streak = numbers.streak_days
),
reached AS (
    SELECT
        streak_days,
        all_users,
        users AS stopped_users,
        CAST(SUM(users) OVER (ORDER BY streak_days DESC ROWS UNBOUNDED PRECEDING) AS BIGINT) AS reached_users
    FROM ended
)
SELECT
    streak_days,
    reached_users,
    stopped_users,
    CAST(reached_users AS DOUBLE PRECISION) / CAST(all_users AS DOUBLE PRECISION) AS survival
FROM reached
