-- Counted from the answers; what the app shows of the same person is beside it. Both differ while answers are on
-- their way, and the nightly run names who differs for longer. Points are under the cap that
-- the answers of a date name (rule 5). Where they name several, each binds all that have it or a lower one, as for events.
WITH by_cap AS (
    SELECT
        answerers.root_person,
        responses.activity_date,
        responses.day_points_max,
        SUM(responses.points) AS points
    FROM facts.responses AS responses
    INNER JOIN dimensions.answerers AS answerers ON answerers.person = responses.person
    GROUP BY answerers.root_person, responses.activity_date, responses.day_points_max
),
under_caps AS (
    SELECT
        root_person,
        activity_date,
        points,
        day_points_max + SUM(points) OVER (
            PARTITION BY root_person, activity_date ORDER BY day_points_max DESC
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) - points AS most
    FROM by_cap
),
by_date AS (
    SELECT root_person, activity_date, LEAST(SUM(points), MIN(most)) AS points
    FROM under_caps
    GROUP BY root_person, activity_date
),
earned AS (
    SELECT root_person, CAST(SUM(points) AS BIGINT) AS points FROM by_date GROUP BY root_person
),
counted AS (
    SELECT
        answerers.root_person,
        COUNT(*) AS answers,
        CAST(SUM(CASE WHEN responses.is_signed_in THEN 1 ELSE 0 END) AS BIGINT) AS signed_in_answers,
        COUNT(DISTINCT responses.activity_date) AS active_days,
        COUNT(DISTINCT responses.category) AS categories,
        COUNT(DISTINCT responses.agent_id) AS agents,
        MIN(responses.created_at) AS first_answer_at,
        MAX(responses.created_at) AS last_answer_at
    FROM facts.responses AS responses
    INNER JOIN dimensions.answerers AS answerers ON answerers.person = responses.person
    GROUP BY answerers.root_person
)
SELECT
    counted.root_person AS person,
    counted.answers,
    counted.signed_in_answers,
    counted.active_days,
    counted.categories,
    counted.agents,
    counted.first_answer_at,
    counted.last_answer_at,
    earned.points,
    stats.total_answers AS shown_answers,
    stats.total_points AS shown_points,
    stats.longest_streak_days
FROM counted
INNER JOIN earned ON earned.root_person = counted.root_person
LEFT JOIN staging.answer_stats AS stats ON stats.person = counted.root_person
