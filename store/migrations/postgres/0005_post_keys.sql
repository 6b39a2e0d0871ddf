-- What an author calls a post, so that a call that is made again is known for what it is. A key is kept for a day, whatever
-- becomes of its post: so it refers to none.
CREATE TABLE post_keys (
    author        BIGINT NOT NULL,
    key           TEXT COLLATE "C" NOT NULL,
    post          BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (author, key)
);

-- The oldest are forgotten first.
CREATE INDEX post_keys_by_age ON post_keys (created_at_ms);
