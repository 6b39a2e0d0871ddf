-- Events that could not be published or applied, whole, with the reason; and those that wait behind them, because order is
-- kept a key. An empty consumer_group: the event log refused the event, which came from outbox row `position`.
CREATE TABLE dead_letters (
    id             BIGINT NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    consumer_group TEXT COLLATE "C" NOT NULL,
    topic          TEXT COLLATE "C" NOT NULL,
    shard          BIGINT NOT NULL,
    position       BIGINT NOT NULL,
    key            TEXT COLLATE "C" NOT NULL,
    type           TEXT COLLATE "C" NOT NULL,
    payload        BYTEA  NOT NULL,
    traceparent    TEXT   NOT NULL,
    epoch          BIGINT NOT NULL,
    logged_at_ms   BIGINT NOT NULL,
    cause          TEXT COLLATE "C" NOT NULL,
    error          TEXT   NOT NULL,
    attempts       BIGINT NOT NULL,
    pod            TEXT   NOT NULL,
    release        TEXT   NOT NULL,
    buried_at_ms   BIGINT NOT NULL,
    redrive        BOOLEAN NOT NULL DEFAULT FALSE,
    UNIQUE (consumer_group, topic, shard, position)
);

CREATE INDEX dead_letters_by_key ON dead_letters (consumer_group, topic, key, position);
-- What somebody has asked for, for whoever reads that partition.
CREATE INDEX dead_letters_to_redrive ON dead_letters (consumer_group, topic, shard, position) WHERE redrive;

-- Who did what to the installation, by hand.
CREATE TABLE audit (
    id    BIGINT NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at_ms BIGINT NOT NULL,
    who   TEXT   NOT NULL,
    what  TEXT   NOT NULL
);
