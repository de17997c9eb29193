-- One row per entry of an account's ledger; entries never change.
-- Columns as in rules/lake/entities.py; load_number tells in which load a row came or last changed.
CREATE TABLE IF NOT EXISTS lake.ledger (
    account_id VARCHAR(256) NOT NULL ENCODE ZSTD,
    created_at TIMESTAMP NOT NULL ENCODE RAW,
    seq BIGINT NOT NULL ENCODE AZ64,
    kind VARCHAR(16) NOT NULL ENCODE ZSTD,
    points BIGINT NOT NULL ENCODE AZ64,
    balance BIGINT NOT NULL ENCODE AZ64,
    event_id VARCHAR(128) ENCODE ZSTD,
    event_type VARCHAR(64) ENCODE ZSTD,
    activity_date DATE ENCODE AZ64,
    reward_id VARCHAR(512) ENCODE ZSTD,
    reverses VARCHAR(64) ENCODE ZSTD,
    "freeze" VARCHAR(32) ENCODE ZSTD,
    freeze_date DATE ENCODE AZ64,
    rules_version BIGINT ENCODE AZ64,
    cap VARCHAR(32) ENCODE ZSTD,
    is_passive BOOLEAN ENCODE RAW,
    expires_on DATE ENCODE AZ64,
    held_at VARCHAR(32) ENCODE ZSTD,
    reason VARCHAR(1024) ENCODE ZSTD,
    brand VARCHAR(64) ENCODE ZSTD,
    measures VARCHAR(512) ENCODE ZSTD,
    seal VARCHAR(160) ENCODE ZSTD,
    extra VARCHAR(65535) ENCODE ZSTD,
    load_number BIGINT NOT NULL ENCODE AZ64,
    PRIMARY KEY (account_id, created_at)
)
DISTSTYLE KEY DISTKEY (account_id) COMPOUND SORTKEY (created_at);
