-- One row per event of a user, in its newest version.
-- Columns as in rules/lake/entities.py; load_number tells in which load a row came or last changed.
CREATE TABLE IF NOT EXISTS lake.events (
    event_id VARCHAR(128) NOT NULL ENCODE ZSTD,
    user_id VARCHAR(256) NOT NULL ENCODE ZSTD,
    idempotency_key VARCHAR(512) NOT NULL ENCODE ZSTD,
    event_type VARCHAR(64) NOT NULL ENCODE ZSTD,
    occurred_at TIMESTAMP NOT NULL ENCODE RAW,
    occurred_local VARCHAR(64) NOT NULL ENCODE ZSTD,
    activity_date DATE NOT NULL ENCODE AZ64,
    zone VARCHAR(64) NOT NULL ENCODE ZSTD,
    timezone VARCHAR(64) ENCODE ZSTD,
    points_awarded BIGINT NOT NULL ENCODE AZ64,
    source VARCHAR(128) NOT NULL ENCODE ZSTD,
    properties VARCHAR(65535) ENCODE ZSTD,
    created_at TIMESTAMP NOT NULL ENCODE AZ64,
    version VARCHAR(51) NOT NULL ENCODE ZSTD,
    rules_version BIGINT ENCODE AZ64,
    cap VARCHAR(32) ENCODE ZSTD,
    is_passive BOOLEAN ENCODE RAW,
    expiry VARCHAR(32) ENCODE ZSTD,
    measures VARCHAR(512) ENCODE ZSTD,
    device_time VARCHAR(64) ENCODE ZSTD,
    offline_since VARCHAR(32) ENCODE ZSTD,
    extra VARCHAR(65535) ENCODE ZSTD,
    load_number BIGINT NOT NULL ENCODE AZ64,
    PRIMARY KEY (event_id, user_id)
)
DISTSTYLE KEY DISTKEY (user_id) COMPOUND SORTKEY (occurred_at);
