-- Pairs of friends (rule 26). Each of both has a row in the lake, which does not name the other one: they are joined by
-- the pair's name. Of somebody who was erased the row is gone, so that person has no name here.
SELECT
    pair_id,
    MIN(user_id) AS user_id,
    CASE WHEN COUNT(*) > 1 THEN MAX(user_id) END AS friend_id,
    CAST(MIN(since) AS DATE) AS began_on,
    MAX(CASE WHEN role = 'asker' THEN user_id END) AS asked_by,
    CASE WHEN MAX(role) = 'server' THEN TRUE WHEN MAX(role) IS NOT NULL THEN FALSE END AS is_by_server,
    CAST(MIN(ended_at) AS DATE) AS ended_on,
    MAX(CASE WHEN ending <> 'erasure' THEN user_id END) AS ended_by,
    MAX(ending) AS ending
FROM staging.friendships
GROUP BY pair_id
