-- The transaction of a Follow between two who have nothing to do with each other, as the ledger makes it, for pgbench.
\set from :first + random(0, :people - 1)
\set to :first + (:from - :first + random(1, :people - 1)) % :people
BEGIN;
SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) AS now_us \gset
SELECT id FROM accounts WHERE (id = :from OR id = :to) AND deleted_at_ms IS NULL FOR KEY SHARE;
SELECT active, version FROM follows WHERE follower = :from AND followee = :to;
SELECT user_id FROM user_counters WHERE user_id = ANY(ARRAY[:from, :to]::BIGINT[]) ORDER BY user_id FOR NO KEY UPDATE;
SELECT active, version FROM blocks WHERE blocker = :from AND blocked = :to;
SELECT active, version FROM blocks WHERE blocker = :to AND blocked = :from;
SELECT active, version FROM follows WHERE follower = :from AND followee = :to;
SELECT private FROM accounts WHERE id = :to;
UPDATE follow_requests SET active = FALSE, version = CASE WHEN version < :now_us THEN :now_us ELSE version + 1 END
    WHERE requester = :from AND target = :to AND active RETURNING version;
INSERT INTO follows (follower, followee, active, version) VALUES (:from, :to, TRUE, :now_us)
    ON CONFLICT (follower, followee) DO UPDATE SET active = TRUE, version =
        CASE WHEN follows.version < excluded.version THEN excluded.version ELSE follows.version + 1 END
    WHERE NOT follows.active RETURNING version;
INSERT INTO outbox (shard, topic, key, type, payload, traceparent, created_at_ms)
    VALUES (CAST(:from AS BIGINT) % 16, 'graph', CAST(:from AS TEXT), 'graph.followed', convert_to(repeat('x', 110), 'UTF8'), repeat('t', 55),
        CAST(:now_us AS BIGINT) / 1000);
UPDATE user_counters SET following = following + CASE WHEN user_id = :from THEN 1 ELSE 0 END,
        followers = followers + CASE WHEN user_id = :to THEN 1 ELSE 0 END
    WHERE user_id IN (:from, :to) AND (user_id <> :from OR following < 7500)
    RETURNING user_id, followers, mode, mode_version;
COMMIT;
