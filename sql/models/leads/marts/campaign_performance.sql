-- How each campaign did. A merged lead counts once. A reaction counts whenever it came. An order counts if the lead
-- placed it within seven dates: the date on which the campaign was first sent to that lead, and the six after it.
WITH contacts AS (
    SELECT
        events.organization_id,
        events.campaign_id,
        leads.root_id,
        MIN(CASE WHEN events.event_type = 'campaign_sent' THEN events.event_date END) AS sent_date,
        MAX(CASE WHEN events.event_type = 'campaign_opened' THEN 1 ELSE 0 END) AS opened,
        MAX(CASE WHEN events.event_type = 'campaign_clicked' THEN 1 ELSE 0 END) AS clicked,
        MAX(CASE WHEN events.event_type = 'campaign_replied' THEN 1 ELSE 0 END) AS replied,
        MAX(CASE WHEN events.event_type = 'campaign_bounced' THEN 1 ELSE 0 END) AS bounced,
        MAX(CASE WHEN events.event_type = 'campaign_unsubscribed' THEN 1 ELSE 0 END) AS unsubscribed,
        MAX(CASE WHEN events.event_type <> 'campaign_sent' THEN 1 ELSE 0 END) AS reacted
    FROM facts.lead_events AS events
    INNER JOIN dimensions.leads AS leads ON leads.lead_organization_id = events.lead_organization_id
    WHERE events.campaign_id IS NOT NULL
    GROUP BY events.organization_id, events.campaign_id, leads.root_id
),
orders AS (
    SELECT
        leads.root_id,
        purchases.event_date
    FROM facts.lead_purchases AS purchases
    INNER JOIN dimensions.leads AS leads ON leads.lead_organization_id = purchases.lead_organization_id
    GROUP BY leads.root_id, purchases.event_date
    HAVING SUM(purchases.orders) > 0
),
buyers AS (
    SELECT DISTINCT
        contacts.organization_id,
        contacts.campaign_id,
        contacts.root_id
    FROM contacts
    INNER JOIN orders
        ON orders.root_id = contacts.root_id
        AND orders.event_date >= contacts.sent_date
        AND orders.event_date < contacts.sent_date + 7
)
SELECT
    contacts.organization_id,
    contacts.campaign_id,
    MIN(contacts.sent_date) AS first_sent_date,
    COUNT(contacts.sent_date) AS leads_sent,
    CAST(SUM(contacts.opened) AS BIGINT) AS leads_opened,
    CAST(SUM(contacts.clicked) AS BIGINT) AS leads_clicked,
    CAST(SUM(contacts.replied) AS BIGINT) AS leads_replied,
    CAST(SUM(contacts.bounced) AS BIGINT) AS leads_bounced,
    CAST(SUM(contacts.unsubscribed) AS BIGINT) AS leads_unsubscribed,
    CAST(SUM(CASE WHEN contacts.sent_date IS NOT NULL AND contacts.reacted = 0 THEN 1 ELSE 0 END) AS BIGINT)
        AS leads_silent,
    COUNT(buyers.root_id) AS leads_ordered_7d
FROM contacts
LEFT JOIN buyers
    ON buyers.organization_id = contacts.organization_id
    AND buyers.campaign_id = contacts.campaign_id
    AND buyers.root_id = contacts.root_id
GROUP BY contacts.organization_id, contacts.campaign_id
