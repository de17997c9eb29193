-- Counted from the answers; what the app shows of the same person is beside it. Both differ while answers are on
-- their way, and the nightly run names who differs for longer.
WITH counted AS (
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
    stats.total_answers AS shown_answers,
    stats.total_points AS shown_points,
    stats.longest_streak_days
FROM counted
LEFT JOIN staging.answer_stats AS stats ON stats.person = counted.root_person
