-- What an author calls a post, so that a call that is made again is known for what it is. A key is kept for a day, whatever
-- becomes of its post: so it refers to none.
CREATE TABLE post_keys (
    author        INTEGER NOT NULL,
    key           TEXT    NOT NULL,
    post          INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    PRIMARY KEY (author, key)
) STRICT, WITHOUT ROWID;

-- The oldest are forgotten first.
CREATE INDEX post_keys_by_age ON post_keys (created_at_ms);
