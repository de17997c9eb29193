-- One row per curated file: how many rows came in, and what became of them. hour: 00 to 23 (UTC), `day` for the file
-- of a whole day, `all` for that of a whole month, whose dt is the first.
-- rows_in = curated + duplicates + quarantined.
CREATE TABLE IF NOT EXISTS lake.curation (
    entity VARCHAR(64) NOT NULL ENCODE ZSTD,
    dt DATE NOT NULL ENCODE RAW,
    hour VARCHAR(3) NOT NULL ENCODE ZSTD,
    rows_in BIGINT NOT NULL ENCODE AZ64,
    curated BIGINT NOT NULL ENCODE AZ64,
    duplicates BIGINT NOT NULL ENCODE AZ64,
    quarantined BIGINT NOT NULL ENCODE AZ64,
    PRIMARY KEY (entity, dt, hour)
)
DISTSTYLE ALL COMPOUND SORTKEY (dt);
