-- One row per event of a lead; events never change.
-- Columns as in rules/lake/entities.py; load_number tells in which load a row came or last changed.
CREATE TABLE IF NOT EXISTS lake.lead_events (
    lead_organization_id VARCHAR(128) NOT NULL ENCODE ZSTD,
    event_id VARCHAR(64) NOT NULL ENCODE ZSTD,
    organization_id VARCHAR(256) NOT NULL ENCODE ZSTD,
    root_id VARCHAR(128) NOT NULL ENCODE ZSTD,
    source VARCHAR(512) NOT NULL ENCODE ZSTD,
    source_type VARCHAR(128) NOT NULL ENCODE ZSTD,
    external_event_id VARCHAR(2048) NOT NULL ENCODE ZSTD,
    event_type VARCHAR(64) NOT NULL ENCODE ZSTD,
    occurred_at TIMESTAMP NOT NULL ENCODE RAW,
    received_at TIMESTAMP NOT NULL ENCODE AZ64,
    object_id VARCHAR(2048) ENCODE ZSTD,
    object_id_ref VARCHAR(512) ENCODE ZSTD,
    payload VARCHAR(65535) NOT NULL ENCODE ZSTD,
    raw_payload_ref VARCHAR(1024) ENCODE ZSTD,
    unreadable VARCHAR(2048) ENCODE ZSTD,
    amount_minor BIGINT ENCODE AZ64,
    order_id VARCHAR(2048) ENCODE ZSTD,
    currency VARCHAR(2048) ENCODE ZSTD,
    sentiment_milli BIGINT ENCODE AZ64,
    campaign_id VARCHAR(2048) ENCODE ZSTD,
    change_number BIGINT ENCODE AZ64,
    change_groups VARCHAR(65535) ENCODE ZSTD,
    foreign_minor BIGINT ENCODE AZ64,
    extra VARCHAR(65535) ENCODE ZSTD,
    load_number BIGINT NOT NULL ENCODE AZ64,
    PRIMARY KEY (source, external_event_id)
)
DISTSTYLE KEY DISTKEY (lead_organization_id) COMPOUND SORTKEY (occurred_at);
