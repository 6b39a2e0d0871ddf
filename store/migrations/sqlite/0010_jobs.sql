-- Work that a change leaves to be done, written with that change. Whoever holds the lease does a chunk, writes down how far it is
-- (step), and gives it back; a job that is through is taken away. The one whose turn is longest ago comes next.
CREATE TABLE jobs (
    id            INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    kind          TEXT    NOT NULL,
    subject       INTEGER NOT NULL REFERENCES accounts (id),
    version       INTEGER NOT NULL,
    step          INTEGER NOT NULL DEFAULT 0,
    owner         TEXT    NOT NULL DEFAULT '',
    epoch         INTEGER NOT NULL DEFAULT 0,
    expires_us    INTEGER NOT NULL DEFAULT 0,
    turn_us       INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX jobs_by_turn ON jobs (turn_us, id);

-- What a person who goes away has to do with others, from both ends.
CREATE INDEX mutes_by_muted ON mutes (muted, muter) WHERE active;
CREATE INDEX likes_by_liker ON likes (liker, post) WHERE active;
