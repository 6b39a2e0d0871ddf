-- A transaction has its number before it is given the id of a row. So of the ids that were given by some moment, each belongs
-- to a transaction that is older than all that begin after it, and once those are over no lower id can come up any more: by
-- that a relay knows where to begin to read, and walks over no rows that were removed.
CREATE FUNCTION outbox_id() RETURNS BIGINT LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_current_xact_id();
    RETURN nextval('outbox_ids');
END $$;

ALTER TABLE outbox ALTER COLUMN id SET DEFAULT outbox_id();
