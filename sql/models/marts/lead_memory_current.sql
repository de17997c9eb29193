-- What is remembered and still holds at the newest time that the lake knows of: not expired, not withdrawn. Of
-- leads that were merged the root's memory counts; expires_at lets a query ask about its own today.
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
