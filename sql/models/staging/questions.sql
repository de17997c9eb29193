-- Generated from rules/lake by `make models`: one column for each field of questions.
-- If an agent asks under the same key again, 90 days after a question closed, that is another row.
SELECT
    question_id,
    created_at,
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
    responses,
    version,
    load_number
FROM lake.questions
