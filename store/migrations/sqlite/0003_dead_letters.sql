-- Events that could not be published or applied, whole, with the reason; and those that wait behind them, because order is
-- kept a key. An empty consumer_group: the event log refused the event, which came from outbox row `position`.
ALTER TABLE dead_letters RENAME TO dead_letters_before;

CREATE TABLE dead_letters (
    id             INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    consumer_group TEXT    NOT NULL,
    topic          TEXT    NOT NULL,
    shard          INTEGER NOT NULL,
    position       INTEGER NOT NULL,
    key            TEXT    NOT NULL,
    type           TEXT    NOT NULL,
    payload        BLOB    NOT NULL,
    traceparent    TEXT    NOT NULL,
    epoch          INTEGER NOT NULL,
    logged_at_ms   INTEGER NOT NULL,
    cause          TEXT    NOT NULL,
    error          TEXT    NOT NULL,
    attempts       INTEGER NOT NULL,
    pod            TEXT    NOT NULL,
    release        TEXT    NOT NULL,
    buried_at_ms   INTEGER NOT NULL,
    redrive        INTEGER NOT NULL DEFAULT FALSE,
    UNIQUE (consumer_group, topic, shard, position)
) STRICT;

INSERT INTO dead_letters (consumer_group, topic, shard, position, key, type, payload, traceparent, epoch, logged_at_ms,
    cause, error, attempts, pod, release, buried_at_ms)
SELECT consumer_group, topic, partition, position, key, type, payload, traceparent, epoch, buried_at_ms,
    'broken_rule', error, 1, '', '', buried_at_ms FROM dead_letters_before ORDER BY id;

DROP TABLE dead_letters_before;

CREATE INDEX dead_letters_by_key ON dead_letters (consumer_group, topic, key, position);
-- What somebody has asked for, for whoever reads that partition.
CREATE INDEX dead_letters_to_redrive ON dead_letters (consumer_group, topic, shard, position) WHERE redrive;

-- Who did what to the installation, by hand.
CREATE TABLE audit (
    id    INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at_ms INTEGER NOT NULL,
    who   TEXT    NOT NULL,
    what  TEXT    NOT NULL
) STRICT;
