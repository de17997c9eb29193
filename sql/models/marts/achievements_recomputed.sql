-- Twin of the rule of achievements (rules/engagement/goals/achievements.py): which users have which of the book that
-- was in force when the newest entry was written, and the event at which each is dated. What was shown and stays
-- although it is no longer true is not here.
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
        rules.event_type,
        rules.property,
        rules.streak,
        rules.combined,
        CASE WHEN rules.of_history THEN DATE '0001-01-01' ELSE declared.first_date END AS since
    FROM staging.rule_book AS rules
    INNER JOIN current_version ON current_version.version = rules.version
    INNER JOIN declared ON declared.name = rules.name
    WHERE rules.kind = 'achievement'
),
reversed AS (
    SELECT DISTINCT user_id, event_id FROM facts.ledger WHERE kind = 'CLAWBACK' AND event_id IS NOT NULL
),
earning AS (
    SELECT
        ledger.user_id,
        ledger.event_id,
        ledger.event_type,
        ledger.activity_date,
        ledger.measures,
        ledger.points,
        CASE WHEN ledger.kind = 'EARN' AND ledger.event_id IS NOT NULL AND reversed.event_id IS NULL THEN 1 ELSE 0 END
        AS is_counted
    FROM facts.ledger AS ledger
    LEFT JOIN reversed ON reversed.user_id = ledger.user_id AND reversed.event_id = ledger.event_id
    WHERE ledger.kind IN ('EARN', 'CLAWBACK', 'RERATE') AND ledger.activity_date IS NOT NULL
),
-- What was corrected of a date's points counts with its first event.
corrected AS (
    SELECT user_id, activity_date, SUM(points) AS change
    FROM earning
    WHERE is_counted = 0
    GROUP BY user_id, activity_date
),
placed AS (
    SELECT
        earning.user_id,
        earning.event_id,
        earning.event_type,
        earning.activity_date,
        earning.measures,
        earning.points,
        ROW_NUMBER() OVER (
            PARTITION BY earning.user_id, earning.activity_date ORDER BY earning.event_id
        ) AS place,
        corrected.change
    FROM earning
    LEFT JOIN corrected
        ON corrected.user_id = earning.user_id AND corrected.activity_date = earning.activity_date
    WHERE earning.is_counted = 1
),
history AS (
    SELECT
        user_id,
        event_id,
        event_type,
        activity_date,
        ',' || COALESCE(measures, '') || ',' AS measures,
        ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY activity_date, event_id) AS n,
        SUM(points + CASE WHEN place = 1 THEN COALESCE(change, 0) ELSE 0 END) OVER (
            PARTITION BY user_id ORDER BY activity_date, event_id ROWS UNBOUNDED PRECEDING
        ) AS points
    FROM placed
),
by_points AS (
    SELECT history.user_id, conditions.item, MIN(history.n) AS n
    FROM history
    INNER JOIN conditions ON conditions.need = 'points_earned' AND history.points >= conditions.at_least
    GROUP BY history.user_id, conditions.item
),
running AS (
    SELECT
        history.user_id,
        conditions.item,
        conditions.at_least,
        history.n,
        SUM(
            CASE
                WHEN conditions.need = 'count' THEN 1
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
        ) OVER (PARTITION BY history.user_id, conditions.item ORDER BY history.n ROWS UNBOUNDED PRECEDING) AS have
    FROM history
    INNER JOIN conditions
        ON conditions.need IN ('count', 'sum') AND conditions.event_type = history.event_type
),
by_events AS (
    SELECT user_id, item, MIN(n) AS n FROM running WHERE have >= at_least GROUP BY user_id, item
),
long_enough AS (
    SELECT
        periods.user_id,
        conditions.item,
        periods.reached_by,
        ROW_NUMBER() OVER (
            PARTITION BY periods.user_id, conditions.item ORDER BY periods.period_start
        ) AS place
    FROM marts.goal_periods AS periods
    INNER JOIN conditions
        ON conditions.need = 'streak'
            AND conditions.streak = periods.name
            AND periods.streak_length >= conditions.at_least
),
by_streaks AS (
    SELECT long_enough.user_id, long_enough.item, history.n
    FROM long_enough
    INNER JOIN history ON history.user_id = long_enough.user_id AND history.event_id = long_enough.reached_by
    WHERE long_enough.place = 1
),
hits AS (
    SELECT user_id, item, n FROM by_points
    UNION ALL SELECT user_id, item, n FROM by_events
    UNION ALL SELECT user_id, item, n FROM by_streaks
),
needed AS (
    SELECT name, COUNT(*) AS conditions FROM conditions GROUP BY name
),
true_since AS (
    SELECT
        hits.user_id,
        conditions.name,
        conditions.since,
        CASE WHEN conditions.combined = 'all' THEN MAX(hits.n) ELSE MIN(hits.n) END AS n
    FROM hits
    INNER JOIN conditions ON conditions.item = hits.item
    INNER JOIN needed ON needed.name = conditions.name
    GROUP BY hits.user_id, conditions.name, conditions.since, conditions.combined, needed.conditions
    HAVING conditions.combined = 'any' OR COUNT(*) = needed.conditions
),
dated AS (
    SELECT true_since.user_id, true_since.name, MIN(history.n) AS n
    FROM true_since
    INNER JOIN history
        ON history.user_id = true_since.user_id
            AND history.n >= true_since.n
            AND history.activity_date >= true_since.since
    GROUP BY true_since.user_id, true_since.name
)
SELECT
    dated.user_id,
    dated.name,
    history.event_id,
    CASE WHEN history.event_id ~ '^[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9][.][0-9]{6}Z#'
        THEN CAST(REPLACE(REPLACE(SUBSTRING(history.event_id, 1, 27), 'T', ' '), 'Z', '') AS TIMESTAMP)
    END AS achieved_at,
    history.activity_date
FROM dated
INNER JOIN history ON history.user_id = dated.user_id AND history.n = dated.n
