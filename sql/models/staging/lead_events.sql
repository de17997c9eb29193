-- Events of leads as loaded. What the live path could not read is here too, and tells why: nothing follows from it.
SELECT
    lead_organization_id,
    event_id,
    organization_id,
    root_id,
    source,
    source_type,
    external_event_id,
    event_type,
    occurred_at,
    received_at,
    object_id,
    object_id_ref,
    payload,
    raw_payload_ref,
    unreadable,
    amount_minor,
    sentiment_milli,
    order_id,
    currency,
    campaign_id,
    load_number
FROM lake.lead_events
