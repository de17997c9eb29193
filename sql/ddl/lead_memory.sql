-- One row per version of something remembered about a lead.
-- Columns as in rules/lake/entities.py; load_number tells in which load a row came or last changed.
CREATE TABLE IF NOT EXISTS lake.lead_memory (
    lead_organization_id VARCHAR(128) NOT NULL ENCODE ZSTD,
    memory_type VARCHAR(128) NOT NULL ENCODE ZSTD,
    memory_key VARCHAR(2048) NOT NULL ENCODE ZSTD,
    version BIGINT NOT NULL ENCODE AZ64,
    "value" VARCHAR(65535) ENCODE ZSTD,
    confidence_milli BIGINT ENCODE AZ64,
    source VARCHAR(512) ENCODE ZSTD,
    source_event_ids VARCHAR(65535) ENCODE ZSTD,
    created_at TIMESTAMP ENCODE AZ64,
    updated_at TIMESTAMP NOT NULL ENCODE RAW,
    expires_at TIMESTAMP ENCODE AZ64,
    extra VARCHAR(65535) ENCODE ZSTD,
    load_number BIGINT NOT NULL ENCODE AZ64,
    PRIMARY KEY (lead_organization_id, memory_type, memory_key, version)
)
DISTSTYLE KEY DISTKEY (lead_organization_id) COMPOUND SORTKEY (updated_at);
