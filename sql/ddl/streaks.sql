-- One row per version of a user's profile.
-- Columns as in rules/lake/entities.py; load_number tells in which load a row came or last changed.
CREATE TABLE IF NOT EXISTS lake.streaks (
    user_id VARCHAR(256) NOT NULL ENCODE ZSTD,
    version BIGINT NOT NULL ENCODE AZ64,
    current_streak BIGINT ENCODE AZ64,
    longest_streak BIGINT ENCODE AZ64,
    last_activity_date DATE ENCODE AZ64,
    active_days BIGINT ENCODE AZ64,
    freezes_spent VARCHAR(65535) ENCODE ZSTD,
    total_bestie_points BIGINT NOT NULL ENCODE AZ64,
    balance BIGINT NOT NULL ENCODE AZ64,
    ledger_head TIMESTAMP ENCODE AZ64,
    ledger_seq BIGINT ENCODE AZ64,
    timezone VARCHAR(64) NOT NULL ENCODE ZSTD,
    timezone_chosen VARCHAR(64) ENCODE ZSTD,
    freezes VARCHAR(65535) ENCODE ZSTD,
    pauses VARCHAR(65535) ENCODE ZSTD,
    skipped_dates VARCHAR(65535) ENCODE ZSTD,
    leaderboard_partition VARCHAR(64) ENCODE ZSTD,
    lapses_at TIMESTAMP ENCODE AZ64,
    tz_review BOOLEAN ENCODE RAW,
    updated_at TIMESTAMP NOT NULL ENCODE RAW,
    freezes_archived BIGINT ENCODE AZ64,
    archived_until DATE ENCODE AZ64,
    opening VARCHAR(64) ENCODE ZSTD,
    extra VARCHAR(65535) ENCODE ZSTD,
    load_number BIGINT NOT NULL ENCODE AZ64,
    PRIMARY KEY (user_id, version)
)
DISTSTYLE KEY DISTKEY (user_id) COMPOUND SORTKEY (updated_at);
