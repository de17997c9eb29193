-- Generated from rules/lake by `make models`: one column for each field of lead_events.
-- An event that the live path could not read is here too. Its column unreadable says why.
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
    order_id,
    currency,
    sentiment_milli,
    campaign_id,
    change_number,
    change_groups,
    foreign_minor,
    load_number
FROM lake.lead_events
