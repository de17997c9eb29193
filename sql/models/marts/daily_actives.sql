-- A date on which nobody was active has a row too, with 0. So AVG(active_users) is the average over all dates.
WITH span AS (
    SELECT MIN(activity_date) AS first_date, MAX(activity_date) AS last_date FROM facts.activity_totals
),
newcomers AS (
    SELECT first_active_date, COUNT(*) AS new_users
    FROM dimensions.users
    WHERE first_active_date IS NOT NULL
    GROUP BY first_active_date
)
SELECT
    dates.date_day,
    COALESCE(active.active_users, 0) AS active_users,
    COALESCE(newcomers.new_users, 0) AS new_users,
    COALESCE(active.active_users, 0) - COALESCE(newcomers.new_users, 0) AS returning_users,
    COALESCE(active.events_count, 0) AS events_count,
    COALESCE(active.points_earned, 0) AS points_earned
FROM dimensions.dates AS dates
INNER JOIN span ON dates.date_day BETWEEN span.first_date AND span.last_date
LEFT JOIN facts.activity_totals AS active ON active.activity_date = dates.date_day
LEFT JOIN newcomers ON newcomers.first_active_date = dates.date_day
