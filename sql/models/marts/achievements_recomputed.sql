-- Twin of the rule of achievements (rules/engagement/achievements.py): which users have which of the book that
-- was in force when the newest entry was written, and the event at which each is dated. What was shown and stays
-- although it is no longer true is not here.
--
-- A row a user and month tells in which month a condition became true. Single entries are read of these months alone. A
-- position is a date and an event's id, as one text: so positions are in order as the history is.
WITH versions AS (
    SELECT DISTINCT version, effective_at FROM staging.rule_book
),
newest AS (
    SELECT MAX(created_at) AS created_at FROM facts.ledger
),
current_version AS (
    SELECT version
    FROM (
        SELECT
            versions.version,
            ROW_NUMBER() OVER (
                ORDER BY
                    CASE WHEN versions.effective_at <= newest.created_at THEN 0 ELSE 1 END,
                    CASE WHEN versions.effective_at <= newest.created_at THEN versions.effective_at END DESC,
                    versions.version DESC
            ) AS place
        FROM versions
        CROSS JOIN newest
    ) AS ranked
    WHERE place = 1
),
declared AS (
    SELECT name, CAST(MIN(effective_at) AS DATE) AS first_date
    FROM staging.rule_book
    WHERE kind = 'achievement'
    GROUP BY name
),
conditions AS (
    SELECT
        rules.item,
        rules.name,
        rules.need,
        rules.at_least,
        CASE WHEN rules.need = 'points_earned' THEN '' ELSE rules.event_type END AS event_type,
        CASE WHEN rules.need = 'sum' THEN rules.property ELSE '' END AS property,
        rules.streak,
        rules.combined,
        CASE WHEN rules.of_history THEN DATE '0001-01-01' ELSE declared.first_date END AS since
    FROM staging.rule_book AS rules
    INNER JOIN current_version ON current_version.version = rules.version
    INNER JOIN declared ON declared.name = rules.name
    WHERE rules.kind = 'achievement'
),
totals AS (
    SELECT
        months.user_id,
        months.activity_month,
        months.amount,
        months.highest,
        conditions.item,
        conditions.at_least,
        SUM(months.amount) OVER (
            PARTITION BY months.user_id, conditions.item ORDER BY months.activity_month ROWS UNBOUNDED PRECEDING
        ) AS have
    FROM facts.user_history_months AS months
    INNER JOIN conditions
        ON conditions.need <> 'streak'
            AND conditions.event_type = months.event_type
            AND conditions.property = months.property
),
-- lacking: what the month's events have to add.
true_months AS (
    SELECT user_id, item, activity_month, at_least - (have - amount) AS lacking
    FROM (
        SELECT
            user_id,
            item,
            activity_month,
            at_least,
            have,
            amount,
            ROW_NUMBER() OVER (PARTITION BY user_id, item ORDER BY activity_month) AS place
        FROM totals
        WHERE have - amount + highest >= at_least
    ) AS enough
    WHERE place = 1
),
by_streaks AS (
    SELECT user_id, item, reached_at
    FROM (
        SELECT
            periods.user_id,
            conditions.item,
            CAST(periods.reached_on AS VARCHAR(10)) || ' ' || periods.reached_by AS reached_at,
            ROW_NUMBER() OVER (
                PARTITION BY periods.user_id, conditions.item ORDER BY periods.period_start
            ) AS place
        FROM marts.goal_periods AS periods
        INNER JOIN conditions
            ON conditions.need = 'streak'
                AND conditions.streak = periods.name
                AND periods.streak_length >= conditions.at_least
    ) AS long_enough
    WHERE place = 1
),
-- What became true before it was declared is dated at the first event since then: the month of that one.
first_months AS (
    SELECT months.user_id, asked.since, MIN(months.activity_month) AS activity_month
    FROM (
        SELECT found.user_id, conditions.since
        FROM (
            SELECT user_id, item FROM true_months
            UNION ALL SELECT user_id, item FROM by_streaks
        ) AS found
        INNER JOIN conditions ON conditions.item = found.item
        WHERE conditions.since > DATE '0001-01-01'
        GROUP BY found.user_id, conditions.since
    ) AS asked
    INNER JOIN facts.user_history_months AS months
        ON months.user_id = asked.user_id AND months.event_type = '' AND months.last_date >= asked.since
    GROUP BY months.user_id, asked.since
),
wanted AS (
    SELECT user_id, activity_month FROM true_months
    UNION SELECT user_id, activity_month FROM first_months
),
entries AS (
    SELECT
        ledger.user_id,
        wanted.activity_month,
        ledger.kind,
        ledger.event_id,
        ledger.event_type,
        ledger.activity_date,
        ledger.measures,
        ledger.points
    FROM facts.ledger AS ledger
    INNER JOIN wanted
        ON wanted.user_id = ledger.user_id
            AND wanted.activity_month = CAST(DATE_TRUNC('month', ledger.activity_date) AS DATE)
    WHERE ledger.kind IN ('EARN', 'CLAWBACK', 'RERATE')
),
reversed AS (
    SELECT DISTINCT user_id, event_id FROM entries WHERE kind = 'CLAWBACK' AND event_id IS NOT NULL
),
earning AS (
    SELECT
        entries.user_id,
        entries.activity_month,
        entries.event_id,
        entries.event_type,
        entries.activity_date,
        entries.measures,
        entries.points,
        CASE WHEN entries.kind = 'EARN' AND entries.event_id IS NOT NULL AND reversed.event_id IS NULL THEN 1 ELSE 0 END
        AS is_counted
    FROM entries
    LEFT JOIN reversed ON reversed.user_id = entries.user_id AND reversed.event_id = entries.event_id
),
-- What was corrected of a date's points counts with its first event.
corrected AS (
    SELECT user_id, activity_date, SUM(points) AS change
    FROM earning
    WHERE is_counted = 0
    GROUP BY user_id, activity_date
),
history AS (
    SELECT
        earning.user_id,
        earning.activity_month,
        earning.activity_date,
        earning.event_type,
        CAST(earning.activity_date AS VARCHAR(10)) || ' ' || earning.event_id AS placed_at,
        ',' || COALESCE(earning.measures, '') || ',' AS measures,
        earning.points,
        CASE
            WHEN ROW_NUMBER() OVER (
                PARTITION BY earning.user_id, earning.activity_date ORDER BY earning.event_id
            ) = 1 THEN COALESCE(corrected.change, 0) ELSE 0
        END AS change
    FROM earning
    LEFT JOIN corrected
        ON corrected.user_id = earning.user_id AND corrected.activity_date = earning.activity_date
    WHERE earning.is_counted = 1
),
running AS (
    SELECT
        history.user_id,
        true_months.item,
        true_months.lacking,
        history.placed_at,
        SUM(
            CASE conditions.need
                WHEN 'points_earned' THEN history.points + history.change
                WHEN 'count' THEN 1
                ELSE COALESCE(
                    CAST(
                        NULLIF(
                            SPLIT_PART(
                                SPLIT_PART(history.measures, ',' || conditions.property || '=', 2), ',', 1
                            ),
                            ''
                        ) AS BIGINT
                    ),
                    0
                )
            END
        ) OVER (
            PARTITION BY history.user_id, true_months.item ORDER BY history.placed_at ROWS UNBOUNDED PRECEDING
        ) AS have
    FROM true_months
    INNER JOIN conditions ON conditions.item = true_months.item
    INNER JOIN history
        ON history.user_id = true_months.user_id
            AND history.activity_month = true_months.activity_month
            AND (conditions.event_type = '' OR conditions.event_type = history.event_type)
),
hits AS (
    SELECT user_id, item, MIN(placed_at) AS reached_at FROM running WHERE have >= lacking GROUP BY user_id, item
    UNION ALL
    SELECT user_id, item, reached_at FROM by_streaks
),
needed AS (
    SELECT name, COUNT(*) AS conditions FROM conditions GROUP BY name
),
true_since AS (
    SELECT
        hits.user_id,
        conditions.name,
        conditions.since,
        CASE WHEN conditions.combined = 'all' THEN MAX(hits.reached_at) ELSE MIN(hits.reached_at) END AS reached_at
    FROM hits
    INNER JOIN conditions ON conditions.item = hits.item
    INNER JOIN needed ON needed.name = conditions.name
    GROUP BY hits.user_id, conditions.name, conditions.since, conditions.combined, needed.conditions
    HAVING conditions.combined = 'any' OR COUNT(*) = needed.conditions
),
first_events AS (
    SELECT first_months.user_id, first_months.since, MIN(history.placed_at) AS placed_at
    FROM first_months
    INNER JOIN history
        ON history.user_id = first_months.user_id
            AND history.activity_month = first_months.activity_month
            AND history.activity_date >= first_months.since
    GROUP BY first_months.user_id, first_months.since
),
dated AS (
    SELECT
        true_since.user_id,
        true_since.name,
        CASE
            WHEN true_since.reached_at >= CAST(true_since.since AS VARCHAR(10)) THEN true_since.reached_at
            ELSE first_events.placed_at
        END AS placed_at
    FROM true_since
    LEFT JOIN first_events ON first_events.user_id = true_since.user_id AND first_events.since = true_since.since
)
SELECT
    user_id,
    name,
    event_id,
    CASE WHEN event_id ~ '^[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9][.][0-9]{6}Z#'
        THEN CAST(REPLACE(REPLACE(SUBSTRING(event_id, 1, 27), 'T', ' '), 'Z', '') AS TIMESTAMP)
    END AS achieved_at,
    activity_date
FROM (
    SELECT
        user_id,
        name,
        SUBSTRING(placed_at, 12, 512) AS event_id,
        CAST(SUBSTRING(placed_at, 1, 10) AS DATE) AS activity_date
    FROM dated
    WHERE placed_at IS NOT NULL
) AS found
