-- One row per answer to a question. People are under pseudonyms, and what they wrote is not here.
-- Columns as in rules/lake/entities.py; load_number tells in which load a row came or last changed.
CREATE TABLE IF NOT EXISTS lake.responses (
    question_id VARCHAR(64) NOT NULL ENCODE ZSTD,
    person VARCHAR(64) NOT NULL ENCODE ZSTD,
    created_at TIMESTAMP NOT NULL ENCODE RAW,
    agent_id VARCHAR(256) NOT NULL ENCODE ZSTD,
    question_type VARCHAR(32) NOT NULL ENCODE ZSTD,
    category VARCHAR(64) NOT NULL ENCODE ZSTD,
    number BIGINT NOT NULL ENCODE AZ64,
    selected_option BIGINT ENCODE AZ64,
    answer_characters BIGINT ENCODE AZ64,
    confidence BIGINT ENCODE AZ64,
    response_time_ms BIGINT ENCODE AZ64,
    points BIGINT NOT NULL ENCODE AZ64,
    activity_date DATE NOT NULL ENCODE AZ64,
    is_signed_in BOOLEAN NOT NULL ENCODE RAW,
    day_points_max BIGINT NOT NULL ENCODE AZ64,
    extra VARCHAR(65535) ENCODE ZSTD,
    load_number BIGINT NOT NULL ENCODE AZ64,
    PRIMARY KEY (question_id, person)
)
DISTSTYLE KEY DISTKEY (person) COMPOUND SORTKEY (created_at);
