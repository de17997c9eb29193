-- One row per version of a person's stats of answers.
-- Columns as in rules/lake/entities.py; load_number tells in which load a row came or last changed.
CREATE TABLE IF NOT EXISTS lake.answer_stats (
    person VARCHAR(64) NOT NULL ENCODE ZSTD,
    version BIGINT NOT NULL ENCODE AZ64,
    updated_at TIMESTAMP NOT NULL ENCODE RAW,
    moved_to VARCHAR(64) ENCODE ZSTD,
    total_answers BIGINT ENCODE AZ64,
    total_points BIGINT ENCODE AZ64,
    streak_days BIGINT ENCODE AZ64,
    longest_streak_days BIGINT ENCODE AZ64,
    streak_last_date DATE ENCODE AZ64,
    badges VARCHAR(2048) ENCODE ZSTD,
    answers_by_category VARCHAR(2048) ENCODE ZSTD,
    first_answer_at TIMESTAMP ENCODE AZ64,
    newest_answer_at TIMESTAMP ENCODE AZ64,
    extra VARCHAR(65535) ENCODE ZSTD,
    load_number BIGINT NOT NULL ENCODE AZ64,
    PRIMARY KEY (person, version)
)
DISTSTYLE KEY DISTKEY (person) COMPOUND SORTKEY (updated_at);
