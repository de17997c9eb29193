-- One row per version of a lead's features.
-- Columns as in rules/lake/entities.py; load_number tells in which load a row came or last changed.
CREATE TABLE IF NOT EXISTS lake.lead_features (
    lead_organization_id VARCHAR(128) NOT NULL ENCODE ZSTD,
    version BIGINT NOT NULL ENCODE AZ64,
    changed_at TIMESTAMP NOT NULL ENCODE RAW,
    computed_at TIMESTAMP ENCODE AZ64,
    merged_into VARCHAR(128) ENCODE ZSTD,
    leaves VARCHAR(65535) ENCODE ZSTD,
    active_on DATE ENCODE AZ64,
    topology BIGINT ENCODE AZ64,
    purchases_as_of TIMESTAMP ENCODE AZ64,
    sentiment_as_of TIMESTAMP ENCODE AZ64,
    activity_as_of TIMESTAMP ENCODE AZ64,
    campaigns_as_of TIMESTAMP ENCODE AZ64,
    monetary_total_minor BIGINT ENCODE AZ64,
    monetary_30d_minor BIGINT ENCODE AZ64,
    monetary_90d_minor BIGINT ENCODE AZ64,
    monetary_365d_minor BIGINT ENCODE AZ64,
    frequency_purchases_30d BIGINT ENCODE AZ64,
    frequency_purchases_90d BIGINT ENCODE AZ64,
    frequency_purchases_365d BIGINT ENCODE AZ64,
    average_order_value_minor BIGINT ENCODE AZ64,
    days_since_last_purchase BIGINT ENCODE AZ64,
    tenure_days BIGINT ENCODE AZ64,
    has_purchased BOOLEAN ENCODE RAW,
    recency_days BIGINT ENCODE AZ64,
    sentiment_avg_30d_milli BIGINT ENCODE AZ64,
    campaign_ignored BIGINT ENCODE AZ64,
    extra VARCHAR(65535) ENCODE ZSTD,
    load_number BIGINT NOT NULL ENCODE AZ64,
    PRIMARY KEY (lead_organization_id, version)
)
DISTSTYLE KEY DISTKEY (lead_organization_id) COMPOUND SORTKEY (changed_at);
