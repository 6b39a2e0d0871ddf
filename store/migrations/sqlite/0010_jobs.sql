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

-- How an author's posts reach the followers' homes: 0 pushed; 1 pushed, and about to be merged at read; 2 merged at read;
-- 3 pushed, and no longer to be merged at read.
ALTER TABLE user_counters ADD COLUMN mode INTEGER NOT NULL DEFAULT 0;
ALTER TABLE user_counters ADD COLUMN mode_version INTEGER NOT NULL DEFAULT 0;
CREATE INDEX user_counters_by_mode ON user_counters (user_id) WHERE mode <> 0;
-- How its author's posts did when it was written: 0 push, 1 both, 2 pull.
ALTER TABLE posts ADD COLUMN fan_out INTEGER NOT NULL DEFAULT 0;
