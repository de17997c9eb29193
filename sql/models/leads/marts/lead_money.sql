-- What leads spent, by currency: amounts of two currencies are never added up. Refunds and cancellations are taken off.
WITH told AS (
    SELECT
        leads.root_id,
        COALESCE(purchases.currency, 'unknown') AS currency,
        purchases.orders,
        COALESCE(purchases.amount_minor, purchases.foreign_minor) AS amount_minor
    FROM facts.lead_purchases AS purchases
    INNER JOIN dimensions.leads AS leads ON leads.lead_organization_id = purchases.lead_organization_id
)
SELECT
    root_id,
    currency,
    CAST(SUM(orders) AS BIGINT) AS orders,
    CAST(SUM(amount_minor) AS BIGINT) AS spent_minor
FROM told
GROUP BY root_id, currency
