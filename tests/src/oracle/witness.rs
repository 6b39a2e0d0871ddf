//! A witness inside the ledger: triggers that note what no reader can see. They are a test's own, in a test's own database.

use tokio_postgres::Client;

/// `witnessed_posts` counts the events of new posts. `unleased_removals` names each outbox row that a session removed whose
/// pod (its application_name) did not hold the row's shard when its transaction began: a lease that runs out later is still
/// locked, so that nobody else can have it. `witnessed_readers` has those who followed a post's author when it was written. Times
/// cannot tell that: a follow carries the time at which its transaction began, and may be committed long after a later post.
const TRIGGERS: &str = "
    CREATE TABLE witnessed_posts (row_id BIGINT NOT NULL);
    CREATE TABLE unleased_removals (row_id BIGINT NOT NULL, shard BIGINT NOT NULL, session TEXT NOT NULL);

    CREATE TABLE witnessed_readers (post BIGINT NOT NULL, reader BIGINT NOT NULL);

    CREATE FUNCTION witness_readers() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO witnessed_readers SELECT NEW.id, follower FROM follows WHERE followee = NEW.author AND active;
        RETURN NULL;
    END $$;
    CREATE TRIGGER witness_readers AFTER INSERT ON posts FOR EACH ROW EXECUTE FUNCTION witness_readers();

    CREATE FUNCTION witness_event() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO witnessed_posts VALUES (NEW.id);
        RETURN NULL;
    END $$;
    CREATE TRIGGER witness_event AFTER INSERT ON outbox FOR EACH ROW
        WHEN (NEW.type = 'post.created') EXECUTE FUNCTION witness_event();

    CREATE FUNCTION witness_removal() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
        IF NOT EXISTS (SELECT 1 FROM shard_leases WHERE shard = OLD.shard
            AND 'freshet ' || owner = current_setting('application_name')
            AND expires_us > extract(epoch FROM transaction_timestamp()) * 1000000)
        THEN
            INSERT INTO unleased_removals VALUES (OLD.id, OLD.shard, current_setting('application_name'));
        END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER witness_removal AFTER DELETE ON outbox FOR EACH ROW EXECUTE FUNCTION witness_removal();
";

/// Puts the witness into a ledger in which nobody has posted yet.
pub(super) async fn install(ledger: &Client) {
    ledger.batch_execute(TRIGGERS).await.expect("a witness");
}
