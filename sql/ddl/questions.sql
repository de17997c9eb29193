-- One row per question asked, in its newest version.
-- Columns as in rules/lake/entities.py; load_number tells in which load a row came or last changed.
CREATE TABLE IF NOT EXISTS lake.questions (
    question_id VARCHAR(64) NOT NULL ENCODE ZSTD,
    created_at TIMESTAMP NOT NULL ENCODE RAW,
    agent_id VARCHAR(256) NOT NULL ENCODE ZSTD,
    question_type VARCHAR(32) NOT NULL ENCODE ZSTD,
    category VARCHAR(64) NOT NULL ENCODE ZSTD,
    prompt VARCHAR(4096) NOT NULL ENCODE ZSTD,
    options VARCHAR(65535) ENCODE ZSTD,
    options_count BIGINT NOT NULL ENCODE AZ64,
    audience VARCHAR(512) ENCODE ZSTD,
    required_responses BIGINT NOT NULL ENCODE AZ64,
    closes_at TIMESTAMP NOT NULL ENCODE AZ64,
    status VARCHAR(16) NOT NULL ENCODE ZSTD,
    closed_at TIMESTAMP ENCODE AZ64,
    responses BIGINT ENCODE AZ64,
    version VARCHAR(51) NOT NULL ENCODE ZSTD,
    extra VARCHAR(65535) ENCODE ZSTD,
    load_number BIGINT NOT NULL ENCODE AZ64,
    PRIMARY KEY (question_id, created_at)
)
DISTSTYLE KEY DISTKEY (question_id) COMPOUND SORTKEY (created_at);
