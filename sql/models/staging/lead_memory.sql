-- The newest version of each thing remembered, withdrawn and expired ones included.
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
        m.*,
        ROW_NUMBER() OVER (
            PARTITION BY m.lead_organization_id, m.memory_type, m.memory_key ORDER BY m.version DESC
        ) AS place
    FROM lake.lead_memory AS m
) AS versions
WHERE place = 1
