SELECT
    question_id,
    person,
    created_at,
    CAST(created_at AS DATE) AS response_date,
    activity_date,
    agent_id,
    question_type,
    category,
    number,
    answer_characters,
    confidence,
    response_time_ms,
    points,
    day_points_max,
    is_signed_in,
    load_number
FROM staging.responses
