-- Generated from rules/lake by `make models`: one column for each field of responses.
SELECT
    question_id,
    person,
    created_at,
    agent_id,
    question_type,
    category,
    number,
    selected_option,
    answer_characters,
    confidence,
    response_time_ms,
    points,
    activity_date,
    is_signed_in,
    day_points_max,
    load_number
FROM lake.responses
