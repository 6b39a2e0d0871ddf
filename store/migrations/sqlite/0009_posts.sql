-- visibility: 0 everybody, 1 followers, 2 the author alone. attachments: their ids in order, with commas between, so that a
-- post is one row to whoever reads it. A deleted post stays as a row without words: its version must not go back.
ALTER TABLE posts ADD COLUMN visibility INTEGER NOT NULL DEFAULT 0;
ALTER TABLE posts ADD COLUMN title TEXT;
ALTER TABLE posts ADD COLUMN language TEXT;
ALTER TABLE posts ADD COLUMN sensitive INTEGER NOT NULL DEFAULT FALSE;
ALTER TABLE posts ADD COLUMN quote_of INTEGER;
ALTER TABLE posts ADD COLUMN attachments TEXT NOT NULL DEFAULT '';
ALTER TABLE posts ADD COLUMN edited_at_ms INTEGER;
ALTER TABLE posts ADD COLUMN deleted_at_ms INTEGER;

-- What a post said before each of its edits, under the version that it had then. It goes with the post's words.
CREATE TABLE post_revisions (
    post        INTEGER NOT NULL REFERENCES posts (id),
    version     INTEGER NOT NULL,
    since_ms    INTEGER NOT NULL,
    text        TEXT    NOT NULL,
    title       TEXT,
    language    TEXT,
    sensitive   INTEGER NOT NULL,
    attachments TEXT    NOT NULL,
    PRIMARY KEY (post, version)
) STRICT, WITHOUT ROWID;

-- What people have uploaded. Only what is ready can be attached to a post.
CREATE TABLE attachments (
    id            INTEGER NOT NULL PRIMARY KEY,
    owner         INTEGER NOT NULL REFERENCES accounts (id),
    state         TEXT    NOT NULL CHECK (state IN ('uploading', 'ready', 'failed')),
    created_at_ms INTEGER NOT NULL
) STRICT;

-- A hash of all that the call said which took the key. Of keys of an earlier release it is not known.
ALTER TABLE post_keys ADD COLUMN fingerprint BLOB;

-- Who likes a post, the latest first, whatever their number.
CREATE INDEX likes_list ON likes (post, version, liker) WHERE active;
