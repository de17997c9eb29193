SELECT
    questions.question_id,
    questions.asked_at,
    responses.selected_option,
    COUNT(*) AS answers
FROM dimensions.questions AS questions
INNER JOIN staging.responses AS responses
    ON responses.question_id = questions.question_id
    AND responses.created_at >= questions.asked_at
    AND (questions.asked_again_at IS NULL OR responses.created_at < questions.asked_again_at)
WHERE responses.selected_option IS NOT NULL
GROUP BY questions.question_id, questions.asked_at, responses.selected_option
