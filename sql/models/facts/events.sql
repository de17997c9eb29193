-- Amount and quantity of a purchase come from its properties, such as {"amount": "12.34", "quantity": 2}. The sender
-- wrote these, so they may be anything. An amount that cannot be read is NULL; it is never guessed.
SELECT
    event_id,
    user_id,
    event_type,
    occurred_at,
    CAST(occurred_at AS DATE) AS occurred_date,
    activity_date,
    zone,
    source,
    points_awarded,
    CASE WHEN amount_text ~ '^[0-9]{1,12}([.][0-9]{1,2})?$' THEN CAST(amount_text AS DECIMAL(18, 2)) END AS amount,
    CASE WHEN quantity_text ~ '^[0-9]{1,9}$' THEN CAST(quantity_text AS BIGINT) END AS quantity,
    created_at,
    version,
    load_number
FROM (
    SELECT
        e.*,
        CASE WHEN IS_VALID_JSON(e.properties) THEN JSON_EXTRACT_PATH_TEXT(e.properties, 'amount') END AS amount_text,
        CASE WHEN IS_VALID_JSON(e.properties) THEN JSON_EXTRACT_PATH_TEXT(e.properties, 'quantity') END AS quantity_text
    FROM staging.events AS e
) AS read
