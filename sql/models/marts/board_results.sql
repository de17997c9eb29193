-- The final standings of boards (docs/rules.md, rule 25): of each period that was final at the newest entry of the ledger,
-- with the points of the ledger's entries that were written before. They equal the final results that the API shows, but
-- for the names: an erased user's row stays there.
WITH versions AS (
    SELECT
        version,
        effective_at,
        published_at,
        COALESCE(MAX(day_starts_at), '00:00') AS day_starts_at
    FROM staging.rule_book
    GROUP BY version, effective_at, published_at
),
-- From which date on which version judges, as in streaks_recomputed.
beginnings AS (
    SELECT DISTINCT
        CASE
            WHEN CAST(CAST(GREATEST(effective_at, published_at) AS DATE) AS TIMESTAMP) = GREATEST(effective_at, published_at)
                THEN CAST(GREATEST(effective_at, published_at) AS DATE)
            ELSE CAST(GREATEST(effective_at, published_at) AS DATE) + 1
        END AS judging_from
    FROM versions
),
judging AS (
    SELECT
        beginnings.judging_from,
        versions.version,
        versions.day_starts_at,
        ROW_NUMBER() OVER (
            PARTITION BY beginnings.judging_from ORDER BY versions.effective_at DESC, versions.version DESC
        ) AS place
    FROM beginnings
    INNER JOIN versions
        ON GREATEST(versions.effective_at, versions.published_at) <= CAST(beginnings.judging_from AS TIMESTAMP)
),
terms AS (
    SELECT
        version,
        day_starts_at,
        judging_from,
        COALESCE(LEAD(judging_from) OVER (ORDER BY judging_from), CAST('9999-12-31' AS DATE)) AS judging_until
    FROM judging
    WHERE place = 1
),
earned AS (
    SELECT user_id, created_at, points, CAST(activity_date AS DATE) AS activity_date
    FROM facts.ledger
    WHERE kind IN ('EARN', 'CLAWBACK', 'RERATE')
        AND activity_date IS NOT NULL
        AND COALESCE(event_type, '') <> 'OPENING_BALANCE'
),
dates AS (
    SELECT DISTINCT activity_date FROM earned
),
-- Each board's periods that have a date with points, whichever version declares it.
candidates AS (
    SELECT DISTINCT
        boards.version,
        boards.name AS board_name,
        boards.grouped_by,
        CASE
            WHEN boards.per = 'week' THEN CAST(DATE_TRUNC('week', dates.activity_date) AS DATE)
            WHEN boards.per = 'month' THEN CAST(DATE_TRUNC('month', dates.activity_date) AS DATE)
            ELSE boards.first_date
        END AS first_date,
        CASE
            WHEN boards.per = 'week' THEN CAST(DATE_TRUNC('week', dates.activity_date) AS DATE) + 6
            WHEN boards.per = 'month' THEN LAST_DAY(dates.activity_date)
            ELSE boards.last_date
        END AS last_date
    FROM staging.rule_book AS boards
    INNER JOIN dates
        ON boards.per IS NOT NULL OR dates.activity_date BETWEEN boards.first_date AND boards.last_date
    WHERE boards.kind = 'board'
),
-- Those that the version declares which judges the date before. A period has ended when its last date has, in UTC-12.
periods AS (
    SELECT
        candidates.board_name,
        candidates.grouped_by,
        candidates.first_date,
        candidates.last_date,
        DATEADD(
            minute,
            (1 + 3) * 24 * 60 + 12 * 60
            + CAST(LEFT(ending.day_starts_at, 2) AS INTEGER) * 60 + CAST(RIGHT(ending.day_starts_at, 2) AS INTEGER),
            CAST(candidates.last_date AS TIMESTAMP)
        ) AS final_at
    FROM candidates
    INNER JOIN terms AS declaring
        ON declaring.version = candidates.version
        AND declaring.judging_from <= candidates.first_date - 1
        AND declaring.judging_until > candidates.first_date - 1
    INNER JOIN terms AS ending
        ON ending.judging_from <= candidates.last_date AND ending.judging_until > candidates.last_date
),
finals AS (
    SELECT * FROM periods WHERE final_at <= (SELECT MAX(created_at) FROM facts.ledger)
),
scores AS (
    SELECT
        finals.board_name,
        finals.grouped_by,
        finals.first_date,
        finals.last_date,
        finals.final_at,
        earned.user_id,
        CAST(SUM(earned.points) AS BIGINT) AS points
    FROM finals
    INNER JOIN earned
        ON earned.activity_date BETWEEN finals.first_date AND finals.last_date AND earned.created_at < finals.final_at
    GROUP BY finals.board_name, finals.grouped_by, finals.first_date, finals.last_date, finals.final_at, earned.user_id
    HAVING SUM(earned.points) > 0
),
-- What was set of each user when the period was final: in the newest version of the profile by then.
settings AS (
    SELECT
        ends.final_at,
        profiles.user_id,
        profiles.hidden,
        profiles.tz_review,
        profiles.user_groups,
        ROW_NUMBER() OVER (PARTITION BY ends.final_at, profiles.user_id ORDER BY profiles.version DESC) AS place
    FROM (SELECT DISTINCT final_at FROM finals) AS ends
    INNER JOIN lake.streaks AS profiles ON profiles.updated_at < ends.final_at
),
listed AS (
    SELECT
        scores.board_name,
        scores.first_date,
        scores.last_date,
        scores.final_at,
        scores.user_id,
        scores.points,
        CASE
            WHEN scores.grouped_by IS NULL THEN ''
            ELSE SPLIT_PART(
                SPLIT_PART(COALESCE(settings.user_groups, ''), ';' || scores.grouped_by || '=', 2), ';', 1
            )
        END AS group_value,
        scores.grouped_by
    FROM scores
    LEFT JOIN settings
        ON settings.final_at = scores.final_at AND settings.user_id = scores.user_id AND settings.place = 1
    WHERE COALESCE(settings.hidden, FALSE) = FALSE AND COALESCE(settings.tz_review, FALSE) = FALSE
)
SELECT
    board_name,
    first_date,
    last_date,
    final_at,
    grouped_by AS group_name,
    group_value,
    user_id,
    points,
    RANK() OVER (PARTITION BY board_name, first_date, group_value ORDER BY points DESC) AS board_rank
FROM listed
WHERE grouped_by IS NULL OR group_value <> ''
