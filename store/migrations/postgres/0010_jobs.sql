-- Work that a change leaves to be done, written with that change. Whoever holds the lease does a chunk, writes down how far it is
-- (step), and gives it back; a job that is through is taken away. The one whose turn is longest ago comes next.
CREATE TABLE jobs (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind          TEXT   NOT NULL,
    subject       BIGINT NOT NULL REFERENCES accounts (id),
    version       BIGINT NOT NULL,
    step          BIGINT NOT NULL DEFAULT 0,
    owner         TEXT   NOT NULL DEFAULT '',
    epoch         BIGINT NOT NULL DEFAULT 0,
    expires_us    BIGINT NOT NULL DEFAULT 0,
    turn_us       BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL
);
CREATE INDEX jobs_by_turn ON jobs (turn_us, id);

-- What a person who goes away has to do with others, from both ends.
CREATE INDEX mutes_by_muted ON mutes (muted, muter) WHERE active;
CREATE INDEX likes_by_liker ON likes (liker, post) WHERE active;

-- How an author's posts reach the followers' homes: 0 pushed; 1 pushed, and about to be merged at read; 2 merged at read;
-- 3 pushed, and no longer to be merged at read.
ALTER TABLE user_counters ADD COLUMN mode BIGINT NOT NULL DEFAULT 0;
ALTER TABLE user_counters ADD COLUMN mode_version BIGINT NOT NULL DEFAULT 0;
CREATE INDEX user_counters_by_mode ON user_counters (user_id) WHERE mode <> 0;
-- How its author's posts did when it was written: 0 push, 1 both, 2 pull.
ALTER TABLE posts ADD COLUMN fan_out BIGINT NOT NULL DEFAULT 0;
