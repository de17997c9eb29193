SELECT
    question_id,
    created_at AS asked_at,
    LEAD(created_at) OVER (PARTITION BY question_id ORDER BY created_at) AS asked_again_at,
    CAST(created_at AS DATE) AS asked_date,
    agent_id,
    question_type,
    category,
    prompt,
    options,
    options_count,
    audience,
    required_responses,
    closes_at,
    status,
    closed_at,
    responses
FROM staging.questions
