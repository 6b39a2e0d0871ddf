-- A deleted row stays for as long as anybody holds a snapshot that could see it: a long report, a replica's feedback, a
-- forgotten transaction. Whoever reads the oldest rows then walks over ever more dead ones. So rows are written to slots in
-- turn, 10 s each, and a slot whose turn is over is truncated when all its rows are gone: that forgets them whatever
-- snapshot is held.
--
-- No row is looked for in one slot only, and order is by id across all of them: a slot says where a row lies, and nothing
-- about when it is due.
LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE;
ALTER TABLE outbox RENAME TO outbox_before;
ALTER INDEX outbox_by_shard RENAME TO outbox_before_by_shard;

-- By the database's clock, so that writers need not agree on anything. Whoever empties slots asks the same function.
CREATE FUNCTION outbox_slot() RETURNS BIGINT LANGUAGE SQL VOLATILE PARALLEL SAFE
    RETURN CAST(floor(extract(epoch FROM clock_timestamp())) AS BIGINT) / 10 % 4;

-- Not an identity: before PostgreSQL 17 a partitioned table has none. Ids go on above those that were given.
CREATE SEQUENCE outbox_ids AS BIGINT;
SELECT setval('outbox_ids', last_value + 1, FALSE) FROM outbox_id_seq;

-- One index a slot, and none on id alone: each is a lock that every query takes.
CREATE TABLE outbox (
    id            BIGINT NOT NULL DEFAULT nextval('outbox_ids'),
    slot          BIGINT NOT NULL DEFAULT outbox_slot(),
    shard         BIGINT NOT NULL,
    topic         TEXT   NOT NULL,
    key           TEXT   NOT NULL,
    type          TEXT   NOT NULL,
    payload       BYTEA  NOT NULL,
    traceparent   TEXT   NOT NULL,
    created_at_ms BIGINT NOT NULL
) PARTITION BY LIST (slot);

ALTER SEQUENCE outbox_ids OWNED BY outbox.id;

CREATE INDEX outbox_by_shard ON outbox (shard, id);

CREATE TABLE outbox_0 PARTITION OF outbox FOR VALUES IN (0)
    WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE outbox_1 PARTITION OF outbox FOR VALUES IN (1)
    WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE outbox_2 PARTITION OF outbox FOR VALUES IN (2)
    WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE outbox_3 PARTITION OF outbox FOR VALUES IN (3)
    WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

INSERT INTO outbox (id, shard, topic, key, type, payload, traceparent, created_at_ms)
SELECT id, shard, topic, key, type, payload, traceparent, created_at_ms FROM outbox_before ORDER BY id;

DROP TABLE outbox_before;
