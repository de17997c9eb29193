-- One row per incremental model: a digest of the SQL that its table was built with.
CREATE TABLE IF NOT EXISTS lake.builds (
    model VARCHAR(128) NOT NULL ENCODE ZSTD,
    fingerprint VARCHAR(64) NOT NULL ENCODE ZSTD,
    PRIMARY KEY (model)
)
DISTSTYLE ALL;
