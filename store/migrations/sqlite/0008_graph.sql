-- Whether strangers must ask before they follow.
ALTER TABLE accounts ADD COLUMN private INTEGER NOT NULL DEFAULT FALSE;

-- How many follow a person, how many they follow, how many posts they wrote: exact. In a table of their own, so that the row of
-- the account stays still. A row is made with its account. Whoever changes what two people are to each other locks both
-- rows first, the lower id before the higher: so such changes come one after the other, and never wait in a circle.
CREATE TABLE user_counters (
    user_id   INTEGER NOT NULL PRIMARY KEY REFERENCES accounts (id),
    followers INTEGER NOT NULL DEFAULT 0,
    following INTEGER NOT NULL DEFAULT 0,
    posts     INTEGER NOT NULL DEFAULT 0
) STRICT;

INSERT INTO user_counters (user_id, followers, following, posts)
SELECT id, coalesce(followers.n, 0), coalesce(following.n, 0), coalesce(written.n, 0)
FROM accounts
LEFT JOIN (SELECT followee, count(*) AS n FROM follows WHERE active GROUP BY followee) AS followers ON followee = id
LEFT JOIN (SELECT follower, count(*) AS n FROM follows WHERE active GROUP BY follower) AS following ON follower = id
LEFT JOIN (SELECT author, count(*) AS n FROM posts GROUP BY author) AS written ON author = id;

-- Lists are read newest first, from a place on, whatever their length.
CREATE INDEX follows_list_following ON follows (follower, version, followee) WHERE active;
CREATE INDEX follows_list_followers ON follows (followee, version, follower) WHERE active;
-- What a reader ended of late: a push that was under way may still bring such an author's post.
CREATE INDEX follows_ended ON follows (follower, version) WHERE NOT active;

-- Ended blocks, mutes and requests stay as rows with their version, as follows do.
CREATE TABLE blocks (
    blocker INTEGER NOT NULL REFERENCES accounts (id),
    blocked INTEGER NOT NULL REFERENCES accounts (id),
    active  INTEGER NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (blocker, blocked)
) STRICT, WITHOUT ROWID;
CREATE INDEX blocks_list ON blocks (blocker, version, blocked) WHERE active;
CREATE INDEX blocks_by_blocked ON blocks (blocked, blocker) WHERE active;

-- until_ms: when it ends by itself; NULL: it does not.
CREATE TABLE mutes (
    muter    INTEGER NOT NULL REFERENCES accounts (id),
    muted    INTEGER NOT NULL REFERENCES accounts (id),
    active   INTEGER NOT NULL,
    until_ms INTEGER,
    version  INTEGER NOT NULL,
    PRIMARY KEY (muter, muted)
) STRICT, WITHOUT ROWID;
CREATE INDEX mutes_list ON mutes (muter, version, muted) WHERE active;

-- Who wants to follow a private account.
CREATE TABLE follow_requests (
    requester INTEGER NOT NULL REFERENCES accounts (id),
    target    INTEGER NOT NULL REFERENCES accounts (id),
    active    INTEGER NOT NULL,
    version   INTEGER NOT NULL,
    PRIMARY KEY (requester, target)
) STRICT, WITHOUT ROWID;
CREATE INDEX follow_requests_list ON follow_requests (target, version, requester) WHERE active;

-- Authors of other servers: each has an account here that nobody can sign in to.
CREATE TABLE remote_authors (
    origin    TEXT NOT NULL,
    remote_id TEXT NOT NULL,
    user_id   INTEGER NOT NULL UNIQUE REFERENCES accounts (id),
    PRIMARY KEY (origin, remote_id)
) STRICT, WITHOUT ROWID;
