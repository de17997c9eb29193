-- Generated from rules/lake by `make models`: one column for each field of lead_memory.
-- The newest version of each memory entry, including withdrawn and expired ones.
SELECT
    lead_organization_id,
    memory_type,
    memory_key,
    version,
    "value" AS memory_value,
    confidence_milli,
    source,
    source_event_ids,
    created_at,
    updated_at,
    expires_at,
    load_number
FROM (
    SELECT
        v.*,
        ROW_NUMBER() OVER (PARTITION BY v.lead_organization_id, v.memory_type, v.memory_key ORDER BY v.version DESC) AS place
    FROM lake.lead_memory AS v
) AS versions
WHERE place = 1
