-- How far an archive of its own was filled from this ledger: a row for the generation that it is in, and for no other one.
-- `part` is the table under way, and what was written to the archive ends with the row (after_first, after_second) of it.
-- One pod at a time fills, by a lease like that of a shard.
CREATE TABLE archive_fills (
    generation     BIGINT  NOT NULL PRIMARY KEY,
    complete       BOOLEAN NOT NULL,
    part           TEXT COLLATE "C" NOT NULL,
    after_first    BIGINT  NOT NULL,
    after_second   BIGINT  NOT NULL,
    rows_done      BIGINT  NOT NULL,
    rows_estimated BIGINT  NOT NULL,
    owner          TEXT COLLATE "C" NOT NULL,
    epoch          BIGINT  NOT NULL,
    expires_us     BIGINT  NOT NULL,
    updated_us     BIGINT  NOT NULL
) WITH (fillfactor = 50);
