-- Generated from rules/lake by `make models`: one column for each field of answer_stats.
-- The newest version of each person's stats. Who has moved to another pseudonym has only moved_to.
SELECT
    person,
    version,
    updated_at,
    moved_to,
    total_answers,
    total_points,
    streak_days,
    longest_streak_days,
    streak_last_date,
    badges,
    answers_by_category,
    first_answer_at,
    newest_answer_at,
    load_number
FROM (
    SELECT
        v.*,
        ROW_NUMBER() OVER (PARTITION BY v.person ORDER BY v.version DESC) AS place
    FROM lake.answer_stats AS v
) AS versions
WHERE place = 1
