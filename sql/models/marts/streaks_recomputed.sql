-- Twin of the streak rule (rules/engagement/streak.py), over the whole history of every user: of most months it reads
-- a row a user, and not their days.
--
-- A missed date costs a freeze, in date order, or ends the run; paused, skipped, rest and short dates are no misses.
-- Rest dates are counted by arithmetic, because a gap may have years of them.
-- For users who never had a freeze it is plain: a run ends in every gap with a missed date. For the others the
-- recursion goes from one covered date to the next, so it is at most as deep as the user has freezes.
WITH RECURSIVE
digits AS (
    SELECT 0 AS digit UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
    UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9
),
numbers AS (
    SELECT 1 + ones.digit + 10 * tens.digit + 100 * hundreds.digit + 1000 * thousands.digit AS n
    FROM digits AS ones
    CROSS JOIN digits AS tens
    CROSS JOIN digits AS hundreds
    CROSS JOIN digits AS thousands
),
-- Freezes granted, less freezes revoked, by date.
changes AS (
    SELECT user_id, first_date AS freeze_date, SUM(freezes) AS change
    FROM facts.user_cover_months
    WHERE kind = 'freeze'
    GROUP BY user_id, first_date
),
held AS (
    SELECT
        user_id,
        SUM(change) OVER (PARTITION BY user_id ORDER BY freeze_date ROWS UNBOUNDED PRECEDING) AS granted
    FROM changes
),
-- How many freezes a user can have spent at most.
purses AS (
    SELECT user_id, MAX(granted) AS freezes_max FROM held GROUP BY user_id HAVING MAX(granted) > 0
),
paused AS (
    SELECT DISTINCT user_id, first_date, last_date FROM facts.user_cover_months WHERE kind = 'pause'
),
weekdays AS (
    SELECT 0 AS weekday, 'monday' AS name UNION ALL SELECT 1, 'tuesday' UNION ALL SELECT 2, 'wednesday'
    UNION ALL SELECT 3, 'thursday' UNION ALL SELECT 4, 'friday' UNION ALL SELECT 5, 'saturday' UNION ALL SELECT 6, 'sunday'
),
-- From which date on which version says what of rest days and of the start of dates (Books.daily_terms in rules/book/book.py): the one that is in
-- force when the date begins in UTC, among those that were published by then.
versions AS (
    SELECT
        version,
        effective_at,
        published_at,
        MAX(rest_days) AS rest_days,
        MAX(rest_days_chosen) AS rest_days_chosen,
        COALESCE(MAX(day_starts_at), '00:00') AS day_starts_at
    FROM staging.rule_book
    GROUP BY version, effective_at, published_at
),
beginnings AS (
    SELECT DISTINCT
        CASE
            WHEN CAST(CAST(GREATEST(effective_at, published_at) AS DATE) AS TIMESTAMP) = GREATEST(effective_at, published_at)
                THEN CAST(GREATEST(effective_at, published_at) AS DATE)
            ELSE CAST(GREATEST(effective_at, published_at) AS DATE) + 1
        END AS first_date
    FROM versions
),
judging AS (
    SELECT
        beginnings.first_date,
        versions.rest_days,
        versions.rest_days_chosen,
        versions.day_starts_at,
        ROW_NUMBER() OVER (
            PARTITION BY beginnings.first_date ORDER BY versions.effective_at DESC, versions.version DESC
        ) AS place
    FROM beginnings
    INNER JOIN versions
        ON GREATEST(versions.effective_at, versions.published_at) <= CAST(beginnings.first_date AS TIMESTAMP)
),
terms AS (
    SELECT
        first_date,
        rest_days,
        rest_days_chosen,
        day_starts_at,
        LAG(day_starts_at) OVER (ORDER BY first_date) AS day_started_at,
        LEAD(first_date) OVER (ORDER BY first_date) - 1 AS last_date
    FROM judging
    WHERE place = 1
),
-- Dates that end earlier by the clock than they began, because a version moved the start: no misses.
short_dates AS (
    SELECT first_date AS day FROM terms WHERE day_starts_at < day_started_at
),
choices AS (
    SELECT
        user_id,
        first_date,
        weekdays,
        LEAD(first_date) OVER (PARTITION BY user_id ORDER BY first_date) - 1 AS last_date
    FROM facts.user_cover_months
    WHERE kind = 'rest_days'
),
chosen AS (
    SELECT
        choices.user_id,
        weekdays.weekday,
        terms.rest_days_chosen,
        GREATEST(terms.first_date, choices.first_date) AS first_date,
        LEAST(
            COALESCE(terms.last_date, CAST('9999-12-31' AS DATE)), COALESCE(choices.last_date, CAST('9999-12-31' AS DATE))
        ) AS last_date,
        -- If a later book allows fewer, the first weekdays of the choice count.
        ROW_NUMBER() OVER (
            PARTITION BY choices.user_id, choices.first_date, terms.first_date ORDER BY weekdays.weekday
        ) AS place
    FROM choices
    CROSS JOIN terms
    INNER JOIN weekdays ON ' ' || choices.weekdays || ' ' LIKE '% ' || weekdays.name || ' %'
    WHERE terms.rest_days_chosen > 0
),
-- A row for each user, span of dates, and weekday (0: Monday) that is a rest day in it.
rest AS (
    SELECT users.user_id, weekdays.weekday, terms.first_date, COALESCE(terms.last_date, CAST('9999-12-31' AS DATE)) AS last_date
    FROM terms
    INNER JOIN weekdays ON ',' || terms.rest_days || ',' LIKE '%,' || weekdays.name || ',%'
    CROSS JOIN (SELECT DISTINCT user_id FROM facts.user_months) AS users
    UNION ALL
    SELECT user_id, weekday, first_date, last_date FROM chosen
    WHERE place <= rest_days_chosen AND first_date <= last_date
),
-- Each user's other neutral dates (paused, skipped or short), each of them once.
protected AS (
    SELECT paused.user_id, paused.first_date + numbers.n - 1 AS day
    FROM paused
    INNER JOIN numbers ON numbers.n <= paused.last_date - paused.first_date + 1
    UNION
    SELECT profiles.user_id, CAST(SPLIT_PART(profiles.skipped_dates, ',', numbers.n) AS DATE) AS day
    FROM facts.profiles AS profiles
    INNER JOIN numbers
        ON numbers.n <= LENGTH(profiles.skipped_dates) - LENGTH(REPLACE(profiles.skipped_dates, ',', '')) + 1
    WHERE profiles.skipped_dates <> ''
    UNION
    SELECT users.user_id, short_dates.day
    FROM short_dates
    CROSS JOIN (SELECT DISTINCT user_id FROM facts.user_months) AS users
),
neutral AS (
    SELECT protected.user_id, protected.day
    FROM protected
    LEFT JOIN rest
        ON rest.user_id = protected.user_id
        AND rest.weekday = MOD(protected.day - CAST('1900-01-01' AS DATE), 7) -- a Monday
        AND protected.day BETWEEN rest.first_date AND rest.last_date
    WHERE rest.user_id IS NULL
),
-- What another system has told of a streak, up to a date (rule 20): `2026-01-31 12 90 300 0`.
openings AS (
    SELECT
        user_id,
        CAST(SPLIT_PART(opening, ' ', 1) AS DATE) AS opened_on,
        CAST(SPLIT_PART(opening, ' ', 2) AS BIGINT) AS opened_length,
        CAST(SPLIT_PART(opening, ' ', 3) AS BIGINT) AS opened_longest,
        CAST(SPLIT_PART(opening, ' ', 4) AS BIGINT) AS opened_days
    FROM facts.profiles
    WHERE opening <> '' AND opening NOT LIKE '__________ 0 %' -- DuckDB fails at SPLIT_PART here, if all are NULL
),
-- Months whose dates are looked at one by one: a freeze, a neutral or a rest date may join their inner runs, or an
-- opening tells of some of their dates.
split AS (
    SELECT months.user_id, months.activity_month
    FROM facts.user_months AS months
    INNER JOIN purses ON purses.user_id = months.user_id
    WHERE months.first_run_until < months.last_run_since
    UNION
    SELECT months.user_id, months.activity_month
    FROM facts.user_months AS months
    INNER JOIN neutral
        ON neutral.user_id = months.user_id
        AND neutral.day > months.first_run_until
        AND neutral.day < months.last_run_since
    UNION
    SELECT months.user_id, months.activity_month
    FROM facts.user_months AS months
    INNER JOIN rest
        ON rest.user_id = months.user_id
        AND rest.first_date < months.last_run_since
        AND rest.last_date > months.first_run_until
    WHERE months.first_run_until < months.last_run_since
    UNION
    SELECT months.user_id, months.activity_month
    FROM facts.user_months AS months
    INNER JOIN openings ON openings.user_id = months.user_id AND months.first_date <= openings.opened_on
),
split_dates AS (
    SELECT months.user_id, months.activity_month + numbers.n - 1 AS activity_date
    FROM split
    INNER JOIN facts.user_months AS months
        ON months.user_id = split.user_id AND months.activity_month = split.activity_month
    INNER JOIN numbers
        ON numbers.n <= 31 AND MOD(CAST(FLOOR(months.active_dates / POWER(2, numbers.n - 1)) AS BIGINT), 2) = 1
),
-- Of all other months only the first and the last run can go on in another month.
whole AS (
    SELECT
        months.user_id,
        months.first_date,
        months.first_run_until,
        months.last_run_since,
        months.last_date,
        months.longest_run,
        months.active_days,
        months.first_run_until - months.first_date + 1 AS first_run,
        CASE
            WHEN months.first_run_until < months.last_run_since THEN months.last_date - months.last_run_since + 1
            ELSE 0
        END AS last_run
    FROM facts.user_months AS months
    LEFT JOIN split ON split.user_id = months.user_id AND split.activity_month = months.activity_month
    WHERE split.user_id IS NULL
),
inner_runs AS (
    SELECT user_id, MAX(longest_run) AS longest_run, SUM(active_days - first_run - last_run) AS inner_days
    FROM whole
    GROUP BY user_id
),
-- Dates in a row, from activity_date on. Dates up to an opening are told by it: it is one date, of the length that the
-- streak had then.
active AS (
    SELECT user_id, first_date AS activity_date, first_run_until AS last_date, first_run AS days_told FROM whole
    UNION ALL
    SELECT user_id, last_run_since, last_date, last_run FROM whole WHERE last_run > 0
    UNION ALL
    SELECT dates.user_id, dates.activity_date, dates.activity_date, 1
    FROM split_dates AS dates
    LEFT JOIN openings ON openings.user_id = dates.user_id
    WHERE openings.opened_on IS NULL OR dates.activity_date > openings.opened_on
    UNION ALL
    SELECT user_id, opened_on, opened_on, opened_length FROM openings
),
days AS (
    SELECT
        user_id,
        activity_date,
        last_date,
        days_told,
        LAG(last_date) OVER (PARTITION BY user_id ORDER BY activity_date) AS previous_date
    FROM active
),
gaps AS (
    SELECT user_id, previous_date, activity_date, activity_date - previous_date - 1 AS dates_between
    FROM days
    WHERE activity_date - previous_date > 1
),
-- Of each weekday: the weeks that begin with it up to the end, less those up to the beginning.
rest_in_gaps AS (
    SELECT
        gaps.user_id,
        gaps.activity_date,
        SUM(
            CAST(LEAST(gaps.activity_date - 1, rest.last_date) - CAST('1900-01-01' AS DATE) - rest.weekday AS BIGINT) / 7
            - CAST(GREATEST(gaps.previous_date, rest.first_date - 1) - CAST('1900-01-01' AS DATE) - rest.weekday AS BIGINT) / 7
        ) AS rest_dates
    FROM gaps
    INNER JOIN rest
        ON rest.user_id = gaps.user_id
        AND rest.first_date < gaps.activity_date
        AND rest.last_date > gaps.previous_date
    GROUP BY gaps.user_id, gaps.activity_date
),
other_in_gaps AS (
    SELECT gaps.user_id, gaps.activity_date, COUNT(*) AS neutral_dates
    FROM gaps
    INNER JOIN neutral
        ON neutral.user_id = gaps.user_id
        AND neutral.day > gaps.previous_date
        AND neutral.day < gaps.activity_date
    GROUP BY gaps.user_id, gaps.activity_date
),
neutral_in_gaps AS (
    SELECT
        gaps.user_id,
        gaps.activity_date,
        COALESCE(other_in_gaps.neutral_dates, 0) AS other_dates,
        COALESCE(other_in_gaps.neutral_dates, 0) + CAST(COALESCE(rest_in_gaps.rest_dates, 0) AS BIGINT) AS neutral_dates
    FROM gaps
    LEFT JOIN rest_in_gaps
        ON rest_in_gaps.user_id = gaps.user_id AND rest_in_gaps.activity_date = gaps.activity_date
    LEFT JOIN other_in_gaps
        ON other_in_gaps.user_id = gaps.user_id AND other_in_gaps.activity_date = gaps.activity_date
),
misses AS (
    SELECT
        gaps.user_id,
        gaps.previous_date,
        gaps.activity_date,
        gaps.dates_between,
        COALESCE(neutral_in_gaps.other_dates, 0) AS other_dates,
        -- How many dates lie between missed ones at most: six of seven may be rest dates.
        CASE WHEN neutral_in_gaps.neutral_dates > neutral_in_gaps.other_dates THEN 7 ELSE 1 END AS spread,
        gaps.dates_between - COALESCE(neutral_in_gaps.neutral_dates, 0) AS missed_dates
    FROM gaps
    LEFT JOIN neutral_in_gaps
        ON neutral_in_gaps.user_id = gaps.user_id AND neutral_in_gaps.activity_date = gaps.activity_date
),
-- From here to `walked` only users with freezes. Of each gap it takes only as many missed dates as the user could
-- cover.
candidates AS (
    SELECT
        misses.user_id,
        misses.activity_date,
        misses.previous_date + numbers.n AS day,
        purses.freezes_max
    FROM misses
    INNER JOIN purses ON purses.user_id = misses.user_id
    INNER JOIN numbers
        ON numbers.n <= LEAST(misses.dates_between, misses.spread * (purses.freezes_max + misses.other_dates))
),
missed AS (
    SELECT
        candidates.user_id,
        candidates.activity_date,
        candidates.day,
        candidates.freezes_max,
        ROW_NUMBER() OVER (PARTITION BY candidates.user_id, candidates.activity_date ORDER BY candidates.day) AS place
    FROM candidates
    LEFT JOIN neutral ON neutral.user_id = candidates.user_id AND neutral.day = candidates.day
    LEFT JOIN rest
        ON rest.user_id = candidates.user_id
        AND rest.weekday = MOD(candidates.day - CAST('1900-01-01' AS DATE), 7)
        AND candidates.day BETWEEN rest.first_date AND rest.last_date
    WHERE neutral.day IS NULL AND rest.user_id IS NULL
),
funded AS (
    SELECT
        missed.user_id,
        missed.day,
        missed.place,
        missed.freezes_max,
        COALESCE(SUM(changes.change), 0) AS granted
    FROM missed
    LEFT JOIN changes ON changes.user_id = missed.user_id AND changes.freeze_date <= missed.day
    GROUP BY missed.user_id, missed.day, missed.place, missed.freezes_max
),
-- A row for each missed date and each number of freezes spent before it. day_if_covered is the date if the user
-- still has a freeze for it then.
levels AS (
    SELECT
        funded.user_id,
        funded.day,
        funded.place,
        numbers.n - 1 AS spent,
        CASE WHEN funded.granted > numbers.n - 1 THEN funded.day END AS day_if_covered
    FROM funded
    INNER JOIN numbers ON numbers.n <= funded.freezes_max
),
-- Which date the next freeze covers after a covered date: the next missed date, if a freeze is left for it. Else the
-- run ends in this gap, and the next freeze covers the first missed date of a later gap.
steps AS (
    SELECT
        user_id,
        day,
        spent,
        COALESCE(
            LEAD(day_if_covered) OVER (PARTITION BY user_id, spent ORDER BY day),
            MIN(CASE WHEN place = 1 THEN day_if_covered END) OVER (
                PARTITION BY user_id, spent
                ORDER BY day
                ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
            )
        ) AS next_day
    FROM levels
),
starts AS (
    SELECT user_id, MIN(day_if_covered) AS day FROM levels WHERE spent = 0 AND place = 1 GROUP BY user_id
),
walked (user_id, day, spent, freezes_spent) AS (
    SELECT user_id, day, 1 AS spent, CAST(CAST(day AS VARCHAR(10)) AS VARCHAR(65535)) AS freezes_spent
    FROM starts
    WHERE day IS NOT NULL
    UNION ALL
    SELECT
        steps.user_id,
        steps.next_day,
        walked.spent + 1,
        CAST(walked.freezes_spent || ',' || CAST(steps.next_day AS VARCHAR(10)) AS VARCHAR(65535))
    FROM walked
    INNER JOIN steps
        ON steps.user_id = walked.user_id AND steps.day = walked.day AND steps.spent = walked.spent
    WHERE steps.next_day IS NOT NULL
),
covered AS (
    SELECT missed.user_id, missed.activity_date, COUNT(*) AS covered_dates
    FROM walked
    INNER JOIN missed ON missed.user_id = walked.user_id AND missed.day = walked.day
    GROUP BY missed.user_id, missed.activity_date
),
-- The recursion makes a user's text longer step by step, so the greatest text is the complete one. Example:
-- '2026-01-02', then '2026-01-02,2026-01-05'.
spent AS (
    SELECT user_id, MAX(freezes_spent) AS freezes_spent FROM walked GROUP BY user_id
),
broken AS (
    SELECT
        days.user_id,
        days.activity_date,
        days.last_date,
        days.days_told,
        CASE
            WHEN days.activity_date - days.previous_date - 1
                > COALESCE(neutral_in_gaps.neutral_dates, 0) + COALESCE(covered.covered_dates, 0) THEN 1
            ELSE 0
        END AS is_start
    FROM days
    LEFT JOIN neutral_in_gaps
        ON neutral_in_gaps.user_id = days.user_id AND neutral_in_gaps.activity_date = days.activity_date
    LEFT JOIN covered
        ON covered.user_id = days.user_id AND covered.activity_date = days.activity_date
),
-- How many runs began later: none, of the run that may go on.
numbered AS (
    SELECT
        user_id,
        last_date,
        days_told,
        SUM(is_start) OVER (PARTITION BY user_id ORDER BY activity_date DESC ROWS UNBOUNDED PRECEDING)
        - is_start AS later_runs
    FROM broken
),
runs AS (
    SELECT user_id, later_runs, MAX(last_date) AS last_date, SUM(days_told) AS run_days
    FROM numbered
    GROUP BY user_id, later_runs
),
streaks AS (
    SELECT
        user_id,
        MAX(last_date) AS last_activity_date,
        MAX(CASE WHEN later_runs = 0 THEN run_days END) AS current_streak,
        MAX(run_days) AS longest_streak,
        SUM(run_days) AS active_days
    FROM runs
    GROUP BY user_id
),
points AS (
    SELECT user_id, SUM(points_earned) AS total_bestie_points, SUM(points) AS balance
    FROM facts.user_ledger_months
    GROUP BY user_id
)
SELECT
    COALESCE(streaks.user_id, points.user_id) AS user_id,
    streaks.last_activity_date,
    CAST(COALESCE(streaks.current_streak, 0) AS BIGINT) AS current_streak,
    CAST(
        GREATEST(
            COALESCE(streaks.longest_streak, 0),
            COALESCE(inner_runs.longest_run, 0),
            COALESCE(openings.opened_longest, 0)
        ) AS BIGINT
    ) AS longest_streak,
    CAST(
        COALESCE(streaks.active_days, 0)
        + COALESCE(inner_runs.inner_days, 0)
        + COALESCE(openings.opened_days - openings.opened_length, 0) AS BIGINT
    ) AS active_days,
    spent.freezes_spent,
    CAST(COALESCE(points.total_bestie_points, 0) AS BIGINT) AS total_bestie_points,
    CAST(COALESCE(points.balance, 0) AS BIGINT) AS balance
FROM streaks
FULL OUTER JOIN points ON points.user_id = streaks.user_id
LEFT JOIN spent ON spent.user_id = streaks.user_id
LEFT JOIN inner_runs ON inner_runs.user_id = streaks.user_id
LEFT JOIN openings ON openings.user_id = streaks.user_id
