-- Points of achievements: what the ledger has paid, beside what the rules say that was due when the night compared the
-- ledgers (marts.achievements_recomputed, by the version in force then). What was earned since is paid with the next
-- entry or within the hour, so that both may differ for as long.
WITH by_date AS (
    SELECT
        user_id,
        reward_id AS name,
        activity_date,
        SUM(points) AS points,
        COUNT(*) AS entries,
        SUM(CASE WHEN points = 0 THEN 1 ELSE 0 END) AS paid_elsewhere,
        MIN(created_at) AS first_entry_at
    FROM facts.ledger
    WHERE kind = 'BONUS'
    GROUP BY user_id, reward_id, activity_date
),
paid AS (
    SELECT
        user_id,
        name,
        CAST(SUM(points) AS BIGINT) AS points,
        MAX(CASE WHEN points <> 0 THEN activity_date END) AS activity_date,
        CAST(SUM(entries) AS BIGINT) AS entries,
        SUM(paid_elsewhere) AS paid_elsewhere,
        MIN(first_entry_at) AS first_entry_at
    FROM by_date
    GROUP BY user_id, name
),
in_force AS (
    SELECT MAX(rules_version) AS version FROM dimensions.event_types
),
declared AS (
    SELECT items.name, MAX(items.points) AS points
    FROM staging.rule_book AS items
    INNER JOIN in_force ON in_force.version = items.version
    WHERE items.kind = 'achievement' AND items.points IS NOT NULL
    GROUP BY items.name
),
due AS (
    SELECT achieved.user_id, achieved.name, declared.points, achieved.activity_date
    FROM marts.achievements_recomputed AS achieved
    INNER JOIN declared ON declared.name = achieved.name
)
SELECT
    COALESCE(paid.user_id, due.user_id) AS user_id,
    COALESCE(paid.name, due.name) AS name,
    COALESCE(paid.points, 0) AS points,
    paid.activity_date,
    COALESCE(paid.entries, 0) AS entries,
    COALESCE(paid.paid_elsewhere, 0) > 0 AS is_paid_elsewhere,
    paid.first_entry_at,
    CASE WHEN COALESCE(paid.paid_elsewhere, 0) > 0 THEN 0 ELSE COALESCE(due.points, 0) END AS points_due,
    CASE WHEN COALESCE(paid.paid_elsewhere, 0) > 0 THEN NULL ELSE due.activity_date END AS due_date
FROM paid
FULL OUTER JOIN due ON due.user_id = paid.user_id AND due.name = paid.name
