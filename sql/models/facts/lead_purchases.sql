-- Orders have a positive amount, refunds a negative one. So the sum of amounts is what was spent.
SELECT
    lead_organization_id,
    event_id,
    organization_id,
    source,
    external_event_id,
    CASE WHEN event_type = 'order_refunded' THEN TRUE ELSE FALSE END AS is_refund,
    order_id,
    occurred_at,
    CAST(occurred_at AS DATE) AS event_date,
    CASE WHEN event_type = 'order_refunded' THEN -amount_minor ELSE amount_minor END AS amount_minor,
    currency,
    load_number
FROM staging.lead_events
WHERE event_type IN ('order_placed', 'order_refunded') AND unreadable IS NULL
