-- How many users reached each length. A user whose longest streak is 5 days has reached 1, 2, 3, 4 and 5.
WITH lengths AS (
    SELECT longest_streak, COUNT(*) AS users
    FROM facts.profiles
    WHERE longest_streak > 0
    GROUP BY longest_streak
),
numbers AS (
    SELECT ROW_NUMBER() OVER (ORDER BY date_day) AS streak_days FROM dimensions.dates
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
