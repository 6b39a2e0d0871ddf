-- Nobody derives anything from a password: it lies apart from what events tell of. changed_us is of the last change by its
-- owner; the same password hashed anew does not move it.
CREATE TABLE passwords (
    account    BIGINT NOT NULL PRIMARY KEY REFERENCES accounts (id),
    hash       TEXT   NOT NULL,
    changed_us BIGINT NOT NULL
);

INSERT INTO passwords (account, hash, changed_us) SELECT id, password_hash, created_at_ms * 1000 FROM accounts;

ALTER TABLE accounts DROP COLUMN password_hash;
ALTER TABLE accounts ADD COLUMN bio TEXT NOT NULL DEFAULT '';
-- As its owner wrote it, and as it is compared: in small letters.
ALTER TABLE accounts ADD COLUMN email TEXT;
ALTER TABLE accounts ADD COLUMN email_key TEXT COLLATE "C";
-- A deleted account stays as a row: its handle is never given again, and its version must not go back.
ALTER TABLE accounts ADD COLUMN deleted_at_ms BIGINT;

CREATE UNIQUE INDEX accounts_by_email ON accounts (email_key) WHERE email_key IS NOT NULL;
