-- Times: _ms are milliseconds, _us microseconds since 1970. A version is max(previous + 1, microseconds at that moment).

-- What is decided once, when the ledger is made, and must not change under the data.
CREATE TABLE install (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE accounts (
    id            INTEGER NOT NULL PRIMARY KEY,
    handle        TEXT    NOT NULL UNIQUE,
    display_name  TEXT    NOT NULL,
    password_hash TEXT    NOT NULL,
    created_at_ms INTEGER NOT NULL,
    version       INTEGER NOT NULL
) STRICT;

-- An ended follow stays as a row with its version, so that follow, unfollow, follow never goes back.
CREATE TABLE follows (
    follower INTEGER NOT NULL REFERENCES accounts (id),
    followee INTEGER NOT NULL REFERENCES accounts (id),
    active   INTEGER NOT NULL,
    version  INTEGER NOT NULL,
    PRIMARY KEY (follower, followee)
) STRICT, WITHOUT ROWID;

-- Fan-out reads an author's followers in order of their ids, a chunk at a time.
CREATE INDEX follows_by_followee ON follows (followee, follower) WHERE active;

CREATE TABLE posts (
    id            INTEGER NOT NULL PRIMARY KEY,
    author        INTEGER NOT NULL REFERENCES accounts (id),
    text          TEXT    NOT NULL,
    created_at_ms INTEGER NOT NULL,
    like_count    INTEGER NOT NULL DEFAULT 0,
    like_version  INTEGER NOT NULL DEFAULT 0,
    version       INTEGER NOT NULL
) STRICT;

CREATE INDEX posts_by_author ON posts (author, id);

CREATE TABLE likes (
    post    INTEGER NOT NULL REFERENCES posts (id),
    liker   INTEGER NOT NULL REFERENCES accounts (id),
    active  INTEGER NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (post, liker)
) STRICT, WITHOUT ROWID;

-- Events that are committed and not yet published. A row goes when the event log has it.
CREATE TABLE outbox (
    id            INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    shard         INTEGER NOT NULL,
    topic         TEXT    NOT NULL,
    key           TEXT    NOT NULL,
    type          TEXT    NOT NULL,
    payload       BLOB    NOT NULL,
    traceparent   TEXT    NOT NULL,
    created_at_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX outbox_by_shard ON outbox (shard, id);

-- Who may publish a shard. The epoch rises with each new owner and fences the one before.
CREATE TABLE shard_leases (
    shard      INTEGER NOT NULL PRIMARY KEY,
    owner      TEXT    NOT NULL,
    epoch      INTEGER NOT NULL,
    since_us   INTEGER NOT NULL,
    expires_us INTEGER NOT NULL
) STRICT;

-- Who may mint ids under which number, and below which millisecond.
CREATE TABLE writer_leases (
    writer     INTEGER NOT NULL PRIMARY KEY,
    owner      TEXT    NOT NULL,
    epoch      INTEGER NOT NULL,
    renewed_us INTEGER NOT NULL,
    expires_us INTEGER NOT NULL,
    ceiling_ms INTEGER NOT NULL
) STRICT;

-- The embedded event log. One process writes it, so positions are in the order of commits.
CREATE TABLE event_log (
    position       INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    topic          TEXT    NOT NULL,
    partition      INTEGER NOT NULL,
    key            TEXT    NOT NULL,
    type           TEXT    NOT NULL,
    payload        BLOB    NOT NULL,
    traceparent    TEXT    NOT NULL,
    epoch          INTEGER NOT NULL,
    appended_at_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX event_log_by_age ON event_log (appended_at_ms);

CREATE TABLE event_offsets (
    consumer_group TEXT    NOT NULL,
    topic          TEXT    NOT NULL,
    partition      INTEGER NOT NULL,
    position       INTEGER NOT NULL,
    PRIMARY KEY (consumer_group, topic, partition)
) STRICT, WITHOUT ROWID;

-- Events that can never be applied, whole, with the reason.
CREATE TABLE dead_letters (
    id             INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    consumer_group TEXT    NOT NULL,
    topic          TEXT    NOT NULL,
    partition      INTEGER NOT NULL,
    position       INTEGER NOT NULL,
    key            TEXT    NOT NULL,
    type           TEXT    NOT NULL,
    payload        BLOB    NOT NULL,
    traceparent    TEXT    NOT NULL,
    epoch          INTEGER NOT NULL,
    error          TEXT    NOT NULL,
    buried_at_ms   INTEGER NOT NULL,
    UNIQUE (consumer_group, topic, partition, position)
) STRICT;
