-- What a user's events of a week (Monday to Sunday of activity_date) earn: by the book's version that judged each, by
-- what the events themselves store, and as the ledger has it. A cap's period lies within one week. All three are equal.
-- An entry says when its event occurred (its event_id begins with it) and the date that it counts for. An event lies
-- within two dates of that date (rule 8). An event that was reversed earns nothing. One that occurred while a version was
-- in force that took effect in the past is judged anew by it (rule 12), whatever the event stores.
WITH reversed AS (
    SELECT DISTINCT user_id, event_id FROM facts.ledger WHERE kind = 'CLAWBACK' AND event_id IS NOT NULL
),
earning AS (
    SELECT
        ledger.user_id,
        ledger.kind,
        ledger.event_id,
        ledger.event_type,
        ledger.activity_date,
        ledger.created_at,
        ledger.points,
        ledger.rules_version,
        ledger.cap,
        ledger.measures,
        CASE WHEN ledger.kind = 'EARN' AND reversed.event_id IS NULL THEN 1 ELSE 0 END AS is_counted,
        CASE WHEN ledger.event_id ~ '^[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z([.][0-9]{6})?#'
            THEN CAST(REPLACE(REPLACE(SPLIT_PART(ledger.event_id, '#', 1), 'T', ' '), 'Z', '') AS TIMESTAMP)
        END AS occurred_at
    FROM facts.ledger AS ledger
    LEFT JOIN reversed ON reversed.user_id = ledger.user_id AND reversed.event_id = ledger.event_id
    WHERE ledger.kind IN ('EARN', 'CLAWBACK', 'RERATE') AND ledger.activity_date IS NOT NULL
),
judged AS (
    SELECT
        ledger.user_id,
        ledger.event_id,
        ledger.event_type,
        ledger.activity_date,
        ledger.points,
        CASE WHEN events.event_id IS NULL THEN 1 ELSE 0 END AS is_unmatched,
        -- An entry whose event is not here (yet) counts as the ledger has it.
        CASE WHEN events.event_id IS NULL THEN ledger.points ELSE events.points_awarded
        END AS event_points,
        CASE WHEN events.event_id IS NULL THEN ledger.cap ELSE events.cap
        END AS event_cap,
        CASE WHEN anew.version IS NOT NULL THEN anew.version
            WHEN events.event_id IS NULL THEN ledger.rules_version
            ELSE events.rules_version END AS version,
        CASE WHEN anew.version IS NULL THEN 0 ELSE 1 END AS is_anew,
        ledger.measures,
        ledger.occurred_at
    FROM earning AS ledger
    LEFT JOIN dimensions.event_type_versions AS anew
        ON anew.event_type = ledger.event_type
            AND anew.version > ledger.rules_version
            AND anew.published_at > anew.effective_from
            AND ledger.occurred_at >= anew.effective_from
            AND (anew.effective_to IS NULL OR ledger.occurred_at < anew.effective_to)
    LEFT JOIN staging.events AS events
        ON events.user_id = ledger.user_id
            AND events.event_id = ledger.event_id
            AND events.occurred_at >= CAST(DATEADD(day, -2, ledger.activity_date) AS TIMESTAMP)
            AND events.occurred_at < CAST(DATEADD(day, 3, ledger.activity_date) AS TIMESTAMP)
            -- One that was accepted long after its entry came again, when its key had expired: perhaps with another body.
            AND events.created_at < CAST(DATEADD(day, 7, CAST(ledger.created_at AS DATE)) AS TIMESTAMP)
    WHERE ledger.is_counted = 1
),
boosted AS (
    SELECT judged.user_id, judged.event_id, MAX(boosts.factor) AS factor
    FROM judged
    INNER JOIN staging.rule_book AS boosts
        ON boosts.version = judged.version
            AND boosts.kind = 'boost'
            AND judged.occurred_at >= boosts.since
            AND judged.occurred_at < boosts.until
            AND (
                boosts.event_types IS NULL
                OR STRPOS(',' || boosts.event_types || ',', ',' || judged.event_type || ',') > 0
            )
    GROUP BY judged.user_id, judged.event_id
),
-- Points by an amount: `n,minutes=30500` has the amounts in thousandths. What is no such text has none.
amounts AS (
    SELECT
        judged.user_id,
        judged.event_id,
        CAST(
            NULLIF(
                SPLIT_PART(SPLIT_PART(judged.measures || ',', ',' || types.points_of || '=', 2), ',', 1), ''
            ) AS BIGINT
        ) AS amount
    FROM judged
    INNER JOIN dimensions.event_type_versions AS types
        ON types.version = judged.version AND types.event_type = judged.event_type
    WHERE types.points_of IS NOT NULL AND judged.measures ~ '^n(,[A-Za-z][A-Za-z0-9_]*=[0-9]{1,15})*$'
),
priced AS (
    SELECT
        judged.user_id,
        judged.event_type,
        judged.activity_date,
        judged.points,
        judged.is_unmatched,
        judged.is_anew,
        judged.event_points,
        CASE WHEN judged.event_cap ~ '^[0-9]{1,17}/(day|week)$' THEN CAST(SPLIT_PART(judged.event_cap, '/', 1) AS BIGINT)
        END AS event_limit,
        CASE WHEN judged.event_cap ~ '^[0-9]{1,17}/(day|week)$' THEN SPLIT_PART(judged.event_cap, '/', 2)
        END AS event_per,
        -- A version that is not here (yet) cannot judge: then what the event stores counts.
        (
            types.points + COALESCE(
                CAST((amounts.amount - MOD(amounts.amount, types.points_each)) / types.points_each AS BIGINT) * types.points_earned,
                0
            )
        ) * COALESCE(boosted.factor, 1) AS book_points,
        CASE WHEN types.cap_events IS NULL THEN types.cap ELSE types.cap * COALESCE(boosted.factor, 1)
        END AS book_limit,
        types.per AS book_per
    FROM judged
    LEFT JOIN dimensions.event_type_versions AS types
        ON types.version = judged.version AND types.event_type = judged.event_type
    LEFT JOIN boosted ON boosted.user_id = judged.user_id AND boosted.event_id = judged.event_id
    LEFT JOIN amounts ON amounts.user_id = judged.user_id AND amounts.event_id = judged.event_id
),
-- What an event stores says nothing of a version that was not there yet.
stored AS (
    SELECT
        user_id,
        event_type,
        activity_date,
        points,
        is_unmatched,
        CASE WHEN is_anew = 1 THEN book_points ELSE event_points END AS event_points,
        CASE WHEN is_anew = 1 THEN book_limit ELSE event_limit END AS event_limit,
        CASE WHEN is_anew = 1 THEN book_per ELSE event_per END AS event_per,
        book_points,
        book_limit,
        book_per
    FROM priced
),
dated AS (
    SELECT
        user_id,
        CAST(DATE_TRUNC('week', activity_date) AS DATE) AS week_start,
        activity_date,
        event_type,
        event_limit,
        event_per,
        CASE WHEN book_points IS NULL THEN event_limit ELSE book_limit END AS book_limit,
        CASE WHEN book_points IS NULL THEN event_per ELSE book_per END AS book_per,
        COUNT(*) AS entries,
        SUM(is_unmatched) AS unmatched,
        SUM(points) AS points,
        SUM(event_points) AS event_points,
        SUM(COALESCE(book_points, event_points)) AS book_points
    FROM stored
    GROUP BY
        user_id,
        activity_date,
        event_type,
        event_limit,
        event_per,
        CASE WHEN book_points IS NULL THEN event_limit ELSE book_limit END,
        CASE WHEN book_points IS NULL THEN event_per ELSE book_per END
),
by_limit AS (
    SELECT
        'book' AS basis,
        user_id,
        week_start,
        event_type,
        book_per AS per,
        CASE WHEN book_per = 'day' THEN activity_date ELSE week_start END AS period_start,
        book_limit AS points_max,
        SUM(book_points) AS points
    FROM dated
    GROUP BY
        user_id,
        week_start,
        event_type,
        book_per,
        CASE WHEN book_per = 'day' THEN activity_date ELSE week_start END,
        book_limit
    UNION ALL
    SELECT
        'events' AS basis,
        user_id,
        week_start,
        event_type,
        event_per AS per,
        CASE WHEN event_per = 'day' THEN activity_date ELSE week_start END AS period_start,
        event_limit AS points_max,
        SUM(event_points) AS points
    FROM dated
    GROUP BY
        user_id,
        week_start,
        event_type,
        event_per,
        CASE WHEN event_per = 'day' THEN activity_date ELSE week_start END,
        event_limit
),
-- Each cap binds all events that have it or a lower one (rule 5). So a period earns no more than a cap, and what the
-- events with higher ones get; and no more than all its points.
allowed AS (
    SELECT
        basis,
        user_id,
        week_start,
        event_type,
        per,
        period_start,
        points,
        points_max + COALESCE(
            SUM(points) OVER (
                PARTITION BY basis, user_id, event_type, per, period_start
                ORDER BY points_max DESC
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ),
            0
        ) AS points_allowed
    FROM by_limit
),
earned AS (
    SELECT
        basis,
        user_id,
        week_start,
        LEAST(SUM(points), COALESCE(MIN(points_allowed), SUM(points))) AS points
    FROM allowed
    GROUP BY basis, user_id, week_start, event_type, per, period_start
),
parts AS (
    SELECT user_id, week_start, entries, unmatched, 0 AS book, 0 AS events, points AS ledger FROM dated
    UNION ALL
    SELECT
        user_id,
        CAST(DATE_TRUNC('week', activity_date) AS DATE) AS week_start,
        CASE WHEN kind = 'EARN' THEN 1 ELSE 0 END AS entries,
        0 AS unmatched,
        0 AS book,
        0 AS events,
        points AS ledger
    FROM earning
    WHERE is_counted = 0
    UNION ALL
    SELECT
        user_id,
        week_start,
        0 AS entries,
        0 AS unmatched,
        CASE WHEN basis = 'book' THEN points ELSE 0 END AS book,
        CASE WHEN basis = 'events' THEN points ELSE 0 END AS events,
        0 AS ledger
    FROM earned
)
SELECT
    user_id,
    week_start,
    CAST(SUM(entries) AS BIGINT) AS entries,
    CAST(SUM(unmatched) AS BIGINT) AS unmatched_entries,
    CAST(SUM(book) AS BIGINT) AS points_by_book,
    CAST(SUM(events) AS BIGINT) AS points_by_events,
    CAST(SUM(ledger) AS BIGINT) AS points_in_ledger
FROM parts
GROUP BY user_id, week_start
