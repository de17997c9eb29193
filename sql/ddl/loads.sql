-- One row per load of an entity and date (UTC, of the entity's time) that it touched: dates of the rows that it
-- brought, and of those that these replaced. Loads lock this table, and nobody else does.
CREATE TABLE IF NOT EXISTS lake.loads (
    entity VARCHAR(64) NOT NULL ENCODE ZSTD,
    load_number BIGINT NOT NULL ENCODE AZ64,
    dt DATE NOT NULL ENCODE AZ64,
    PRIMARY KEY (entity, load_number, dt)
)
DISTSTYLE ALL;
