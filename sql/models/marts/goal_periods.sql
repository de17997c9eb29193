-- Twin of the rule of streaks that a book declares (rules/engagement/goals.py), over all of every user's
-- history: each period that was reached, and the streak after it.
--
-- The version in force at midnight UTC of a period's first date judges it, or the first within it that has the streak: such
-- a period is no miss. A missed period costs a freeze, in order, or
-- ends the run. As in marts.streaks_recomputed, the recursion goes from one covered period to the next, so it is at most
-- as deep as the user has freezes.
WITH RECURSIVE
-- Each version, from when to when it is in force. What was before the first of them is its own.
in_force AS (
    SELECT
        version,
        CASE WHEN ROW_NUMBER() OVER (ORDER BY effective_at, version) = 1 THEN TIMESTAMP '0001-01-01 00:00:00'
            ELSE effective_at END AS effective_from,
        COALESCE(LEAD(effective_at) OVER (ORDER BY effective_at, version), TIMESTAMP '9999-12-31 00:00:00')
        AS effective_to
    FROM (SELECT DISTINCT version, effective_at FROM staging.rule_book) AS versions
),
streak_rules AS (
    SELECT
        rules.name,
        rules.per,
        rules.need,
        rules.at_least,
        rules.property,
        ',' || rules.event_types || ',' AS event_types,
        CASE WHEN STRPOS(',' || rules.covered_by || ',', ',freezes,') > 0 THEN 1 ELSE 0 END AS by_freezes,
        CASE WHEN STRPOS(',' || rules.covered_by || ',', ',pauses,') > 0 THEN 1 ELSE 0 END AS by_pauses,
        in_force.effective_from,
        in_force.effective_to
    FROM staging.rule_book AS rules
    INNER JOIN in_force ON in_force.version = rules.version
    WHERE rules.kind = 'streak'
),
names AS (
    SELECT DISTINCT name, per FROM streak_rules
),
reversed AS (
    SELECT DISTINCT user_id, event_id FROM facts.ledger WHERE kind = 'CLAWBACK' AND event_id IS NOT NULL
),
measured AS (
    SELECT
        ledger.user_id,
        ledger.activity_date,
        ledger.event_id,
        ledger.event_type,
        ',' || ledger.measures || ',' AS measures,
        CAST(DATE_TRUNC('week', ledger.activity_date) AS DATE) AS week_start,
        CAST(DATE_TRUNC('month', ledger.activity_date) AS DATE) AS month_start
    FROM facts.ledger AS ledger
    LEFT JOIN reversed ON reversed.user_id = ledger.user_id AND reversed.event_id = ledger.event_id
    WHERE ledger.kind = 'EARN'
        AND ledger.measures IS NOT NULL
        AND ledger.activity_date IS NOT NULL
        AND reversed.event_id IS NULL
),
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
calendar AS (
    SELECT CAST(DATEADD(day, numbers.n - 1, span.first_date) AS DATE) AS date_day
    FROM (SELECT MIN(activity_date) AS first_date, MAX(activity_date) AS last_date FROM measured) AS span
    INNER JOIN numbers ON numbers.n <= DATEDIFF(day, span.first_date, span.last_date) + 1
),
starts AS (
    SELECT date_day AS period_start, 'day' AS per, CAST(DATEADD(day, 1, date_day) AS DATE) AS next_start
    FROM calendar
    UNION
    SELECT
        CAST(DATE_TRUNC('week', date_day) AS DATE),
        'week',
        CAST(DATEADD(day, 7, CAST(DATE_TRUNC('week', date_day) AS DATE)) AS DATE)
    FROM calendar
    UNION
    SELECT
        CAST(DATE_TRUNC('month', date_day) AS DATE),
        'month',
        CAST(DATEADD(month, 1, CAST(DATE_TRUNC('month', date_day) AS DATE)) AS DATE)
    FROM calendar
),
-- Which version judges a period of a streak: the one in force when it begins; else the first within it that has the
-- streak (is_opening). Of versions with one instant only the last was ever in force.
judging AS (
    SELECT name, period_start, need, at_least, property, event_types, by_freezes, by_pauses, is_opening
    FROM (
        SELECT
            rules.name,
            starts.period_start,
            rules.need,
            rules.at_least,
            rules.property,
            rules.event_types,
            rules.by_freezes,
            rules.by_pauses,
            CASE WHEN rules.effective_from > CAST(starts.period_start AS TIMESTAMP) THEN 1 ELSE 0 END AS is_opening,
            ROW_NUMBER() OVER (
                PARTITION BY rules.name, starts.period_start ORDER BY rules.effective_from
            ) AS place
        FROM starts
        INNER JOIN streak_rules AS rules
            ON rules.per = starts.per
                AND rules.effective_to > CAST(starts.period_start AS TIMESTAMP)
                AND rules.effective_from < CAST(starts.next_start AS TIMESTAMP)
                AND rules.effective_to > rules.effective_from
    ) AS known
    WHERE place = 1
),
placed AS (
    SELECT
        measured.user_id,
        measured.activity_date,
        measured.event_id,
        measured.event_type,
        measured.measures,
        names.name,
        CASE names.per WHEN 'day' THEN measured.activity_date WHEN 'week' THEN measured.week_start
            ELSE measured.month_start END AS period_start
    FROM measured
    CROSS JOIN names
),
-- What each event adds, in the order of a history: by date, and within it by when events occurred.
added AS (
    SELECT
        placed.user_id,
        placed.name,
        placed.period_start,
        placed.activity_date,
        placed.event_id,
        rules.need,
        rules.at_least,
        CASE
            WHEN ROW_NUMBER() OVER (
                PARTITION BY placed.user_id, placed.name, placed.activity_date ORDER BY placed.event_id
            ) = 1 THEN 1 ELSE 0
        END AS is_new_date,
        COALESCE(
            CAST(
                NULLIF(SPLIT_PART(SPLIT_PART(placed.measures, ',' || rules.property || '=', 2), ',', 1), '')
                AS BIGINT
            ),
            0
        ) AS amount
    FROM placed
    INNER JOIN judging AS rules
        ON rules.name = placed.name
            AND rules.period_start = placed.period_start
            AND STRPOS(rules.event_types, ',' || placed.event_type || ',') > 0
),
summed AS (
    SELECT
        user_id,
        name,
        period_start,
        activity_date,
        event_id,
        at_least,
        SUM(CASE need WHEN 'active_days' THEN is_new_date WHEN 'events' THEN 1 ELSE amount END) OVER (
            PARTITION BY user_id, name, period_start ORDER BY activity_date, event_id ROWS UNBOUNDED PRECEDING
        ) AS have
    FROM added
),
reached AS (
    SELECT user_id, name, period_start, activity_date, event_id
    FROM (
        SELECT
            user_id,
            name,
            period_start,
            activity_date,
            event_id,
            ROW_NUMBER() OVER (PARTITION BY user_id, name, period_start ORDER BY activity_date, event_id) AS place
        FROM summed
        WHERE have >= at_least
    ) AS enough
    WHERE place = 1
),
spans AS (
    SELECT
        reached.user_id,
        reached.name,
        names.per,
        MIN(reached.period_start) AS first_start,
        MAX(reached.period_start) AS last_start
    FROM reached
    INNER JOIN names ON names.name = reached.name
    GROUP BY reached.user_id, reached.name, names.per
),
periods AS (
    SELECT
        spans.user_id,
        spans.name,
        spans.per,
        starts.period_start,
        starts.next_start,
        DATEDIFF(day, starts.period_start, starts.next_start) AS dates,
        CASE WHEN reached.user_id IS NULL THEN 0 ELSE 1 END AS is_reached,
        reached.activity_date,
        reached.event_id,
        CASE WHEN rules.name IS NULL OR rules.is_opening = 1 THEN 0 ELSE 1 END AS is_asked,
        COALESCE(rules.by_freezes, 0) AS by_freezes,
        COALESCE(rules.by_pauses, 0) AS by_pauses
    FROM spans
    INNER JOIN starts
        ON starts.per = spans.per
            AND starts.period_start >= spans.first_start
            AND starts.period_start <= spans.last_start
    LEFT JOIN reached
        ON reached.user_id = spans.user_id
            AND reached.name = spans.name
            AND reached.period_start = starts.period_start
    LEFT JOIN judging AS rules
        ON rules.name = spans.name
            AND rules.period_start = starts.period_start
),
listed AS (
    SELECT profiles.user_id, SPLIT_PART(profiles.pauses, ',', numbers.n) AS pause
    FROM facts.profiles AS profiles
    INNER JOIN numbers
        ON numbers.n <= LENGTH(profiles.pauses) - LENGTH(REPLACE(profiles.pauses, ',', '')) + 1
    WHERE profiles.pauses <> ''
),
-- A profile puts away pauses that ended more than a year before a date: older versions have these.
paused AS (
    SELECT
        user_id,
        CAST(SPLIT_PART(pause, '/', 1) AS DATE) AS first_date,
        CAST(SPLIT_PART(pause, '/', 2) AS DATE) AS last_date
    FROM listed
    UNION
    SELECT older.user_id, older.first_date, older.last_date
    FROM facts.user_cover_months AS older
    INNER JOIN facts.profiles AS profiles ON profiles.user_id = older.user_id
    WHERE older.kind = 'pause' AND older.last_date <= profiles.archived_until - 365
),
-- Each user's neutral dates, each of them once.
neutral AS (
    SELECT user_id, day, MAX(is_skipped) AS is_skipped
    FROM (
        SELECT paused.user_id, paused.first_date + numbers.n - 1 AS day, 0 AS is_skipped
        FROM paused
        INNER JOIN numbers ON numbers.n <= paused.last_date - paused.first_date + 1
        UNION ALL
        SELECT profiles.user_id, CAST(SPLIT_PART(profiles.skipped_dates, ',', numbers.n) AS DATE), 1
        FROM facts.profiles AS profiles
        INNER JOIN numbers
            ON numbers.n <= LENGTH(profiles.skipped_dates) - LENGTH(REPLACE(profiles.skipped_dates, ',', '')) + 1
        WHERE profiles.skipped_dates <> ''
    ) AS dates
    GROUP BY user_id, day
),
covered AS (
    SELECT
        periods.user_id,
        periods.name,
        periods.period_start,
        SUM(CASE WHEN neutral.is_skipped = 1 OR periods.by_pauses = 1 THEN 1 ELSE 0 END) AS neutral_dates
    FROM periods
    INNER JOIN neutral
        ON neutral.user_id = periods.user_id
            AND neutral.day >= periods.period_start
            AND neutral.day < periods.next_start
    WHERE periods.is_reached = 0 AND periods.is_asked = 1
    GROUP BY periods.user_id, periods.name, periods.period_start
),
-- Freezes granted, less freezes revoked, by date.
changes AS (
    SELECT user_id, first_date AS freeze_date, SUM(freezes) AS change
    FROM facts.user_cover_months
    WHERE kind = 'freeze'
    GROUP BY user_id, first_date
),
-- How many freezes a user can have used at most.
purses AS (
    SELECT user_id, MAX(granted) AS freezes_max
    FROM (
        SELECT
            user_id,
            SUM(change) OVER (PARTITION BY user_id ORDER BY freeze_date ROWS UNBOUNDED PRECEDING) AS granted
        FROM changes
    ) AS held
    GROUP BY user_id
    HAVING MAX(granted) > 0
),
-- 1: reached. 0: no miss. -1: missed. gap: how many were reached up to it.
judged AS (
    SELECT
        user_id,
        name,
        per,
        period_start,
        next_start,
        activity_date,
        event_id,
        by_freezes,
        outcome,
        SUM(CASE WHEN outcome = 1 THEN 1 ELSE 0 END) OVER (
            PARTITION BY user_id, name ORDER BY period_start ROWS UNBOUNDED PRECEDING
        ) AS gap
    FROM (
        SELECT
            periods.user_id,
            periods.name,
            periods.per,
            periods.period_start,
            periods.next_start,
            periods.activity_date,
            periods.event_id,
            periods.by_freezes,
            CASE
                WHEN periods.is_reached = 1 THEN 1
                WHEN periods.is_asked = 0 OR 2 * COALESCE(covered.neutral_dates, 0) > periods.dates THEN 0
                ELSE -1
            END AS outcome
        FROM periods
        LEFT JOIN covered
            ON covered.user_id = periods.user_id
                AND covered.name = periods.name
                AND covered.period_start = periods.period_start
    ) AS told
),
missed AS (
    SELECT
        user_id,
        name,
        period_start,
        next_start,
        by_freezes,
        gap,
        ROW_NUMBER() OVER (PARTITION BY user_id, name, gap ORDER BY period_start) AS place
    FROM judged
    WHERE outcome = -1
),
gaps AS (
    SELECT user_id, name, gap, COUNT(*) AS missed_periods FROM missed GROUP BY user_id, name, gap
),
-- From here to `walked` only users with freezes.
funded AS (
    SELECT
        missed.user_id,
        missed.name,
        missed.period_start,
        missed.place,
        purses.freezes_max,
        COALESCE(SUM(CASE WHEN missed.by_freezes = 1 THEN changes.change END), 0) AS granted
    FROM missed
    INNER JOIN purses ON purses.user_id = missed.user_id AND missed.place <= purses.freezes_max
    LEFT JOIN changes ON changes.user_id = missed.user_id AND changes.freeze_date < missed.next_start
    GROUP BY missed.user_id, missed.name, missed.period_start, missed.place, purses.freezes_max
),
-- A row for each missed period and each number of freezes used before it.
levels AS (
    SELECT
        funded.user_id,
        funded.name,
        funded.period_start,
        funded.place,
        numbers.n - 1 AS spent,
        CASE WHEN funded.granted > numbers.n - 1 THEN funded.period_start END AS if_covered
    FROM funded
    INNER JOIN numbers ON numbers.n <= funded.freezes_max
),
-- Which period the next freeze covers: the next missed one, if a freeze is left for it. Else the run ends in this gap,
-- and the next freeze covers the first missed period of a later gap.
steps AS (
    SELECT
        user_id,
        name,
        period_start,
        spent,
        COALESCE(
            LEAD(if_covered) OVER (PARTITION BY user_id, name, spent ORDER BY period_start),
            MIN(CASE WHEN place = 1 THEN if_covered END) OVER (
                PARTITION BY user_id, name, spent
                ORDER BY period_start
                ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
            )
        ) AS next_start
    FROM levels
),
walked (user_id, name, period_start, spent) AS (
    SELECT user_id, name, MIN(if_covered) AS period_start, CAST(1 AS BIGINT) AS spent
    FROM levels
    WHERE spent = 0 AND place = 1 AND if_covered IS NOT NULL
    GROUP BY user_id, name
    UNION ALL
    SELECT steps.user_id, steps.name, steps.next_start, CAST(walked.spent + 1 AS BIGINT)
    FROM walked
    INNER JOIN steps
        ON steps.user_id = walked.user_id
            AND steps.name = walked.name
            AND steps.period_start = walked.period_start
            AND steps.spent = walked.spent
    WHERE steps.next_start IS NOT NULL
),
frozen AS (
    SELECT missed.user_id, missed.name, missed.gap, COUNT(*) AS covered_periods
    FROM walked
    INNER JOIN missed
        ON missed.user_id = walked.user_id
            AND missed.name = walked.name
            AND missed.period_start = walked.period_start
    GROUP BY missed.user_id, missed.name, missed.gap
),
numbered AS (
    SELECT
        judged.user_id,
        judged.name,
        judged.per,
        judged.period_start,
        judged.activity_date,
        judged.event_id,
        COALESCE(frozen.covered_periods, 0) AS covered_periods,
        SUM(CASE WHEN gaps.missed_periods > COALESCE(frozen.covered_periods, 0) THEN 1 ELSE 0 END) OVER (
            PARTITION BY judged.user_id, judged.name ORDER BY judged.period_start ROWS UNBOUNDED PRECEDING
        ) AS run_number
    FROM judged
    LEFT JOIN gaps
        ON gaps.user_id = judged.user_id AND gaps.name = judged.name AND gaps.gap = judged.gap - 1
    LEFT JOIN frozen
        ON frozen.user_id = judged.user_id AND frozen.name = judged.name AND frozen.gap = judged.gap - 1
    WHERE judged.outcome = 1
)
SELECT
    user_id,
    name,
    per,
    period_start,
    activity_date AS reached_on,
    event_id AS reached_by,
    ROW_NUMBER() OVER (PARTITION BY user_id, name, run_number ORDER BY period_start) AS streak_length,
    CAST(
        SUM(covered_periods) OVER (
            PARTITION BY user_id, name ORDER BY period_start ROWS UNBOUNDED PRECEDING
        ) AS BIGINT
    ) AS freezes_used
FROM numbered
