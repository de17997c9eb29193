-- How many rows the warehouse has of each entity and day. The ledger is not here, because the opening entry of an
-- account has no time of its own that would tell its day.
SELECT 'events' AS entity, CAST(occurred_at AS DATE) AS dt, COUNT(*) AS loaded
FROM lake.events
GROUP BY CAST(occurred_at AS DATE)
UNION ALL
SELECT 'daily_activity' AS entity, activity_date AS dt, COUNT(*) AS loaded
FROM lake.daily_activity
GROUP BY activity_date
UNION ALL
SELECT 'streaks' AS entity, CAST(updated_at AS DATE) AS dt, COUNT(*) AS loaded
FROM lake.streaks
GROUP BY CAST(updated_at AS DATE)
UNION ALL
SELECT 'user_goals' AS entity, CAST(folded_at AS DATE) AS dt, COUNT(*) AS loaded
FROM lake.user_goals
GROUP BY CAST(folded_at AS DATE)
UNION ALL
SELECT 'friendships' AS entity, CAST(since AS DATE) AS dt, COUNT(*) AS loaded
FROM lake.friendships
GROUP BY CAST(since AS DATE)
UNION ALL
SELECT 'league_results' AS entity, last_date AS dt, COUNT(*) AS loaded
FROM lake.league_results
GROUP BY last_date
UNION ALL
SELECT 'lead_events' AS entity, CAST(occurred_at AS DATE) AS dt, COUNT(*) AS loaded
FROM lake.lead_events
GROUP BY CAST(occurred_at AS DATE)
UNION ALL
SELECT 'lead_memory' AS entity, CAST(updated_at AS DATE) AS dt, COUNT(*) AS loaded
FROM lake.lead_memory
GROUP BY CAST(updated_at AS DATE)
UNION ALL
SELECT 'lead_features' AS entity, CAST(changed_at AS DATE) AS dt, COUNT(*) AS loaded
FROM lake.lead_features
GROUP BY CAST(changed_at AS DATE)
UNION ALL
SELECT 'questions' AS entity, CAST(created_at AS DATE) AS dt, COUNT(*) AS loaded
FROM lake.questions
GROUP BY CAST(created_at AS DATE)
UNION ALL
SELECT 'responses' AS entity, CAST(created_at AS DATE) AS dt, COUNT(*) AS loaded
FROM lake.responses
GROUP BY CAST(created_at AS DATE)
UNION ALL
SELECT 'answer_stats' AS entity, CAST(updated_at AS DATE) AS dt, COUNT(*) AS loaded
FROM lake.answer_stats
GROUP BY CAST(updated_at AS DATE)
UNION ALL
SELECT 'notifications' AS entity, CAST(claimed_at AS DATE) AS dt, COUNT(*) AS loaded
FROM lake.notifications
GROUP BY CAST(claimed_at AS DATE)
UNION ALL
SELECT 'rules' AS entity, CAST(stored_at AS DATE) AS dt, COUNT(*) AS loaded
FROM lake.rules
GROUP BY CAST(stored_at AS DATE)
