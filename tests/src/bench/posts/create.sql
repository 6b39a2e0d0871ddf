-- The transaction of a CreatePost without a key, as the ledger makes it, for pgbench. An id is made from the time and by chance:
-- the ledger's come from a pod that counts them.
\set author :first + random(0, :people - 1)
\set chance random(0, 4194303)
BEGIN;
SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) AS now_us \gset
SELECT id FROM accounts WHERE (id = :author OR id = :author) AND deleted_at_ms IS NULL FOR KEY SHARE;
UPDATE user_counters SET posts = posts + 1 WHERE user_id = :author RETURNING mode;
INSERT INTO posts (id, author, text, title, language, sensitive, attachments, visibility, quote_of, created_at_ms, version, fan_out)
    VALUES ((CAST(:now_us AS BIGINT) / 1000 - 1704067200000) * 4194304 + :chance, :author,
        repeat('a post of middling length, as most of them are ', 3), NULL, NULL, FALSE, '', 0, NULL,
        CAST(:now_us AS BIGINT) / 1000, :now_us, 0);
INSERT INTO outbox (shard, topic, key, type, payload, traceparent, created_at_ms)
    VALUES (CAST(:author AS BIGINT) % 16, 'posts', CAST(:author AS TEXT), 'post.created', convert_to(repeat('x', 260), 'UTF8'),
        repeat('t', 55), CAST(:now_us AS BIGINT) / 1000);
COMMIT;
