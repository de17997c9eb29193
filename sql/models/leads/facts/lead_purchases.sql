-- What each event adds to a lead's orders and to what was spent: sums of both are exact (rules/leads/orders.py).
-- Amounts of another currency than the organization's are in foreign_minor: nobody can add up the two.
SELECT
    lead_organization_id,
    event_id,
    organization_id,
    source,
    external_event_id,
    event_type,
    CASE WHEN event_type = 'purchase_completed' THEN 1 WHEN event_type = 'order_cancelled' THEN -1 ELSE 0 END AS orders,
    order_id,
    occurred_at,
    CAST(occurred_at AS DATE) AS event_date,
    CASE WHEN event_type IN ('purchase_completed', 'order_charged') THEN amount_minor ELSE -amount_minor END AS amount_minor,
    CASE WHEN event_type IN ('purchase_completed', 'order_charged') THEN foreign_minor ELSE -foreign_minor END AS foreign_minor,
    currency,
    load_number
FROM staging.lead_events
WHERE event_type IN ('purchase_completed', 'order_refunded', 'order_cancelled', 'order_charged') AND unreadable IS NULL
