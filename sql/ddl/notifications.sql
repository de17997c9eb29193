-- One row per message to a phone whose outcome is known.
-- Columns as in rules/lake/entities.py; load_number tells in which load a row came or last changed.
CREATE TABLE IF NOT EXISTS lake.notifications (
    phone VARCHAR(64) NOT NULL ENCODE ZSTD,
    message VARCHAR(256) NOT NULL ENCODE ZSTD,
    claimed_at TIMESTAMP NOT NULL ENCODE RAW,
    question_id VARCHAR(64) ENCODE ZSTD,
    outcome VARCHAR(16) NOT NULL ENCODE ZSTD,
    settled_at TIMESTAMP ENCODE AZ64,
    version VARCHAR(51) NOT NULL ENCODE ZSTD,
    extra VARCHAR(65535) ENCODE ZSTD,
    load_number BIGINT NOT NULL ENCODE AZ64,
    PRIMARY KEY (phone, message)
)
DISTSTYLE KEY DISTKEY (phone) COMPOUND SORTKEY (claimed_at);
