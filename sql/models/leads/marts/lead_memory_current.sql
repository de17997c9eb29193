-- Memory entries that still hold (not expired, not withdrawn) at the newest time in the lake. For merged leads the
-- root's memory counts. A query that wants its own today compares expires_at with that.
WITH newest AS (
    SELECT MAX(seen_at) AS seen_at
    FROM (
        SELECT MAX(received_at) AS seen_at FROM facts.lead_events
        UNION ALL SELECT MAX(updated_at) FROM staging.lead_memory
    ) AS seen
)
SELECT
    memory.lead_organization_id,
    memory.memory_type,
    memory.memory_key,
    memory.version,
    memory.memory_value,
    memory.confidence_milli,
    memory.source,
    memory.source_event_ids,
    memory.created_at,
    memory.updated_at,
    memory.expires_at
FROM staging.lead_memory AS memory
CROSS JOIN newest
LEFT JOIN staging.lead_features AS live ON live.lead_organization_id = memory.lead_organization_id
WHERE (memory.expires_at IS NULL OR memory.expires_at > newest.seen_at)
    AND live.merged_into IS NULL
