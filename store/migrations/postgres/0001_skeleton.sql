-- Times: _ms are milliseconds, _us microseconds since 1970. A version is max(previous + 1, microseconds at that moment).
-- Text that is compared or ordered compares as bytes, as it does in SQLite, whatever the database's locale is.

-- What is decided once, when the ledger is made, and must not change under the data.
CREATE TABLE install (
    name  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE accounts (
    id            BIGINT NOT NULL PRIMARY KEY,
    handle        TEXT COLLATE "C" NOT NULL UNIQUE,
    display_name  TEXT   NOT NULL,
    password_hash TEXT   NOT NULL,
    created_at_ms BIGINT NOT NULL,
    version       BIGINT NOT NULL
);

-- An ended follow stays as a row with its version, so that follow, unfollow, follow never goes back.
CREATE TABLE follows (
    follower BIGINT  NOT NULL REFERENCES accounts (id),
    followee BIGINT  NOT NULL REFERENCES accounts (id),
    active   BOOLEAN NOT NULL,
    version  BIGINT  NOT NULL,
    PRIMARY KEY (follower, followee)
);

-- Fan-out reads an author's followers in order of their ids, a chunk at a time.
CREATE INDEX follows_by_followee ON follows (followee, follower) WHERE active;

-- Pages keep room for new versions of their rows: a like then touches no index.
CREATE TABLE posts (
    id            BIGINT NOT NULL PRIMARY KEY,
    author        BIGINT NOT NULL REFERENCES accounts (id),
    text          TEXT   NOT NULL,
    created_at_ms BIGINT NOT NULL,
    like_count    BIGINT NOT NULL DEFAULT 0,
    like_version  BIGINT NOT NULL DEFAULT 0,
    version       BIGINT NOT NULL
) WITH (fillfactor = 85);

CREATE INDEX posts_by_author ON posts (author, id);

CREATE TABLE likes (
    post    BIGINT  NOT NULL REFERENCES posts (id),
    liker   BIGINT  NOT NULL REFERENCES accounts (id),
    active  BOOLEAN NOT NULL,
    version BIGINT  NOT NULL,
    PRIMARY KEY (post, liker)
);

-- Events that are committed and not yet published. A row goes when the event log has it. Ids are in the order of inserts, and
-- rows surface in the order of commits. All of it is short-lived, so it is swept by count and not by share.
CREATE TABLE outbox (
    id            BIGINT NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    shard         BIGINT NOT NULL,
    topic         TEXT   NOT NULL,
    key           TEXT   NOT NULL,
    type          TEXT   NOT NULL,
    payload       BYTEA  NOT NULL,
    traceparent   TEXT   NOT NULL,
    created_at_ms BIGINT NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX outbox_by_shard ON outbox (shard, id);

-- Who may publish a shard. The epoch rises with each new owner and fences the one before.
CREATE TABLE shard_leases (
    shard      BIGINT NOT NULL PRIMARY KEY,
    owner      TEXT COLLATE "C" NOT NULL,
    epoch      BIGINT NOT NULL,
    since_us   BIGINT NOT NULL,
    expires_us BIGINT NOT NULL
) WITH (fillfactor = 50);

-- Who may mint ids under which number, and below which millisecond.
CREATE TABLE writer_leases (
    writer     BIGINT NOT NULL PRIMARY KEY,
    owner      TEXT COLLATE "C" NOT NULL,
    epoch      BIGINT NOT NULL,
    renewed_us BIGINT NOT NULL,
    expires_us BIGINT NOT NULL,
    ceiling_ms BIGINT NOT NULL
) WITH (fillfactor = 50);
