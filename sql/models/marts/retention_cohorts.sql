-- A cohort is the users who were first active in the same month (or week). Period 0 is that month (or week).
WITH sizes AS (
    SELECT
        cohort_kind,
        cohort_start,
        active_users AS cohort_users
    FROM facts.retention
    WHERE period_start = cohort_start
)
SELECT
    counted.cohort_kind,
    counted.cohort_start,
    CASE
        WHEN counted.cohort_kind = 'month'
            THEN CAST(
                12 * (EXTRACT(year FROM counted.period_start) - EXTRACT(year FROM counted.cohort_start))
                + EXTRACT(month FROM counted.period_start) - EXTRACT(month FROM counted.cohort_start)
                AS BIGINT
            )
        ELSE CAST(DATEDIFF(day, counted.cohort_start, counted.period_start) / 7 AS BIGINT)
    END AS period_number,
    sizes.cohort_users,
    counted.active_users,
    CAST(counted.active_users AS DOUBLE PRECISION) / CAST(sizes.cohort_users AS DOUBLE PRECISION) AS retention
FROM facts.retention AS counted
INNER JOIN sizes ON sizes.cohort_kind = counted.cohort_kind AND sizes.cohort_start = counted.cohort_start
