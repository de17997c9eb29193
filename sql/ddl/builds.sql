-- One row per table that a model made: a digest of the SQL that made it, and the newest load of each lake table
-- that is in it, such as `daily_activity=12,ledger=9`. tested: the same as of when its tests last held.
CREATE TABLE IF NOT EXISTS lake.builds (
    model VARCHAR(128) NOT NULL ENCODE ZSTD,
    fingerprint VARCHAR(64) NOT NULL ENCODE ZSTD,
    loads VARCHAR(1024) ENCODE ZSTD,
    tested VARCHAR(1024) ENCODE ZSTD,
    PRIMARY KEY (model)
)
DISTSTYLE ALL;
