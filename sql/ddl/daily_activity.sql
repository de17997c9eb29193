-- One row per user and date with activity, in its newest version.
-- Columns as in rules/lake/entities.py; load_number tells in which load a row came or last changed.
CREATE TABLE IF NOT EXISTS lake.daily_activity (
    user_id VARCHAR(256) NOT NULL ENCODE ZSTD,
    activity_date DATE NOT NULL ENCODE RAW,
    first_event_id VARCHAR(128) NOT NULL ENCODE ZSTD,
    events_count BIGINT NOT NULL ENCODE AZ64,
    points_earned BIGINT NOT NULL ENCODE AZ64,
    points_by_type VARCHAR(65535) ENCODE ZSTD,
    ledger_head TIMESTAMP NOT NULL ENCODE AZ64,
    created_at TIMESTAMP NOT NULL ENCODE AZ64,
    extra VARCHAR(65535) ENCODE ZSTD,
    load_number BIGINT NOT NULL ENCODE AZ64,
    PRIMARY KEY (user_id, activity_date)
)
DISTSTYLE KEY DISTKEY (user_id) COMPOUND SORTKEY (activity_date);
