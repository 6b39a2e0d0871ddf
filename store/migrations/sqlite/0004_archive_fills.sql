-- How far an archive of its own was filled from this ledger: a row for the generation that it is in, and for no other one.
-- `part` is the table under way, and what was written to the archive ends with the row (after_first, after_second) of it.
-- One pod at a time fills, by a lease like that of a shard.
CREATE TABLE archive_fills (
    generation     INTEGER NOT NULL PRIMARY KEY,
    complete       INTEGER NOT NULL,
    part           TEXT    NOT NULL,
    after_first    INTEGER NOT NULL,
    after_second   INTEGER NOT NULL,
    rows_done      INTEGER NOT NULL,
    rows_estimated INTEGER NOT NULL,
    owner          TEXT    NOT NULL,
    epoch          INTEGER NOT NULL,
    expires_us     INTEGER NOT NULL,
    updated_us     INTEGER NOT NULL
) STRICT;
