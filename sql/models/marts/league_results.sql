-- What became of each user in each week's league (docs/rules.md, rule 27), as the closing has decided it: what comes
-- later counts on the board, and not here. A division's number and name follow from the book of the week.
SELECT
    first_date,
    last_date,
    user_id,
    division,
    cohort,
    members,
    league_rank,
    points,
    zone,
    LAG(division) OVER (PARTITION BY user_id ORDER BY first_date) AS division_before
FROM staging.league_results
