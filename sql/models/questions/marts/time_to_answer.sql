-- An answer is a question's n-th by its number, which follows the order in which answers were stored.
WITH answered AS (
    SELECT
        questions.question_id,
        questions.asked_at,
        questions.required_responses,
        responses.number,
        CAST(
            DATEDIFF(
                second, DATE_TRUNC('second', questions.asked_at), DATE_TRUNC('second', responses.created_at)
            ) AS BIGINT
        ) AS seconds
    FROM dimensions.questions AS questions
    INNER JOIN facts.responses AS responses
        ON responses.question_id = questions.question_id
        AND responses.created_at >= questions.asked_at
        AND (questions.asked_again_at IS NULL OR responses.created_at < questions.asked_again_at)
),
counted AS (
    SELECT
        question_id,
        asked_at,
        COUNT(*) AS answers,
        MIN(CASE WHEN number = 1 THEN seconds END) AS seconds_to_first,
        MIN(CASE WHEN 2 * number = required_responses OR 2 * number = required_responses + 1 THEN seconds END)
            AS seconds_to_half,
        MIN(CASE WHEN number = required_responses THEN seconds END) AS seconds_to_all
    FROM answered
    GROUP BY question_id, asked_at
)
SELECT
    questions.question_id,
    questions.asked_at,
    questions.asked_date,
    questions.agent_id,
    questions.question_type,
    questions.category,
    questions.status,
    questions.required_responses,
    COALESCE(counted.answers, 0) AS answers,
    counted.seconds_to_first,
    counted.seconds_to_half,
    counted.seconds_to_all
FROM dimensions.questions AS questions
LEFT JOIN counted ON counted.question_id = questions.question_id AND counted.asked_at = questions.asked_at
