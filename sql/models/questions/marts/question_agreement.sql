-- Agreement is the share of the option that most people chose; pair agreement is the chance that two people, drawn at
-- random from those who answered, chose the same. With two options and many answers, chance alone gives 0.5.
WITH ranked AS (
    SELECT
        question_id,
        asked_at,
        selected_option,
        answers,
        ROW_NUMBER() OVER (PARTITION BY question_id, asked_at ORDER BY answers DESC, selected_option) AS place
    FROM marts.option_answers
),
counted AS (
    SELECT
        question_id,
        asked_at,
        CAST(SUM(answers) AS BIGINT) AS answers,
        COUNT(*) AS options_chosen,
        MAX(CASE WHEN place = 1 THEN selected_option END) AS top_option,
        MAX(CASE WHEN place = 1 THEN answers END) AS top_answers,
        CAST(SUM(answers * (answers - 1)) AS BIGINT) AS agreeing_pairs
    FROM ranked
    GROUP BY question_id, asked_at
)
SELECT
    questions.question_id,
    questions.asked_at,
    questions.asked_date,
    questions.agent_id,
    questions.category,
    questions.options_count,
    counted.answers,
    counted.options_chosen,
    counted.top_option,
    counted.top_answers,
    CAST(counted.top_answers AS DOUBLE PRECISION) / CAST(counted.answers AS DOUBLE PRECISION) AS agreement,
    CASE
        WHEN counted.answers > 1
            THEN CAST(counted.agreeing_pairs AS DOUBLE PRECISION)
                / CAST(counted.answers * (counted.answers - 1) AS DOUBLE PRECISION)
    END AS pair_agreement
FROM counted
INNER JOIN dimensions.questions AS questions
    ON questions.question_id = counted.question_id AND questions.asked_at = counted.asked_at
