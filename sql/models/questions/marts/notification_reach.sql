-- Messages are known by phone and answers by person, and the lake does not know who has which phone. So a reaction is
-- a signed-in person's answer after the first message went out: it need not be because of a message.
WITH told AS (
    SELECT
        questions.question_id,
        questions.asked_at,
        COUNT(*) AS phones,
        CAST(SUM(CASE WHEN messages.outcome = 'sent' THEN 1 ELSE 0 END) AS BIGINT) AS phones_reached,
        CAST(SUM(CASE WHEN messages.outcome = 'dead' THEN 1 ELSE 0 END) AS BIGINT) AS phones_dead,
        CAST(SUM(CASE WHEN messages.outcome = 'unconfirmed' THEN 1 ELSE 0 END) AS BIGINT) AS phones_unconfirmed,
        MIN(CASE WHEN messages.outcome = 'sent' THEN messages.claimed_at END) AS first_told_at,
        MAX(CASE WHEN messages.outcome = 'sent' THEN messages.claimed_at END) AS last_told_at
    FROM staging.notifications AS messages
    INNER JOIN dimensions.questions AS questions
        ON questions.question_id = messages.question_id
        AND messages.claimed_at >= questions.asked_at
        AND (questions.asked_again_at IS NULL OR messages.claimed_at < questions.asked_again_at)
    GROUP BY questions.question_id, questions.asked_at
),
reactions AS (
    SELECT
        told.question_id,
        told.asked_at,
        CAST(
            DATEDIFF(
                second, DATE_TRUNC('second', told.first_told_at), DATE_TRUNC('second', responses.created_at)
            ) AS BIGINT
        ) AS seconds
    FROM told
    INNER JOIN dimensions.questions AS questions
        ON questions.question_id = told.question_id AND questions.asked_at = told.asked_at
    INNER JOIN facts.responses AS responses
        ON responses.question_id = told.question_id
        AND responses.created_at >= told.first_told_at
        AND (questions.asked_again_at IS NULL OR responses.created_at < questions.asked_again_at)
    WHERE responses.is_signed_in
),
counted AS (
    SELECT
        question_id,
        asked_at,
        COUNT(*) AS reactions,
        CAST(SUM(CASE WHEN seconds < 3600 THEN 1 ELSE 0 END) AS BIGINT) AS reactions_in_an_hour,
        MIN(seconds) AS seconds_to_first_reaction
    FROM reactions
    GROUP BY question_id, asked_at
)
SELECT
    told.question_id,
    told.asked_at,
    told.phones,
    told.phones_reached,
    told.phones_dead,
    told.phones_unconfirmed,
    CAST(told.phones_reached AS DOUBLE PRECISION) / CAST(told.phones AS DOUBLE PRECISION) AS reach,
    told.first_told_at,
    told.last_told_at,
    COALESCE(counted.reactions, 0) AS reactions,
    COALESCE(counted.reactions_in_an_hour, 0) AS reactions_in_an_hour,
    counted.seconds_to_first_reaction
FROM told
LEFT JOIN counted ON counted.question_id = told.question_id AND counted.asked_at = told.asked_at
