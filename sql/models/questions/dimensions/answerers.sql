-- A person gets another pseudonym when a key of fingerprints is rotated, and answers again after that. Each step here
-- follows twice as many moves as the one before: up to sixteen, while a key is kept for a month at least.
WITH moves AS (
    SELECT
        person,
        moved_to
    FROM staging.answer_stats
    WHERE moved_to IS NOT NULL
),
two AS (
    SELECT
        moves.person,
        COALESCE(further.moved_to, moves.moved_to) AS moved_to
    FROM moves
    LEFT JOIN moves AS further ON further.person = moves.moved_to
),
four AS (
    SELECT
        two.person,
        COALESCE(further.moved_to, two.moved_to) AS moved_to
    FROM two
    LEFT JOIN two AS further ON further.person = two.moved_to
),
eight AS (
    SELECT
        four.person,
        COALESCE(further.moved_to, four.moved_to) AS moved_to
    FROM four
    LEFT JOIN four AS further ON further.person = four.moved_to
),
sixteen AS (
    SELECT
        eight.person,
        COALESCE(further.moved_to, eight.moved_to) AS moved_to
    FROM eight
    LEFT JOIN eight AS further ON further.person = eight.moved_to
),
everybody AS (
    SELECT person FROM staging.responses
    UNION SELECT person FROM staging.answer_stats
    UNION SELECT moved_to FROM moves
)
SELECT
    everybody.person,
    COALESCE(sixteen.moved_to, everybody.person) AS root_person,
    CASE WHEN sixteen.moved_to IS NULL THEN TRUE ELSE FALSE END AS is_root
FROM everybody
LEFT JOIN sixteen ON sixteen.person = everybody.person
