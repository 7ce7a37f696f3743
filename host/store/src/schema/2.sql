-- What jobs and the cluster held and used. A subject is a job's number, 0 the
-- whole cluster. A row stands for `span` seconds from `at`; with span 0 it is
-- one measurement, of which the others are made.
CREATE TABLE samples (
    subject INTEGER NOT NULL,
    span    INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    metric  TEXT NOT NULL,
    n       INTEGER NOT NULL,
    held    INTEGER NOT NULL,
    total   INTEGER NOT NULL,
    low     INTEGER NOT NULL,
    high    INTEGER NOT NULL,
    PRIMARY KEY (subject, span, at, metric)
) STRICT, WITHOUT ROWID;
CREATE INDEX samples_by_age ON samples (span, at);

-- What was held, by day (since 1970, UTC), tenant and queue: milli-cards,
-- MiB of GPU memory, milli-cores and MiB, each times milliseconds.
CREATE TABLE usage (
    day        INTEGER NOT NULL,
    tenant     TEXT NOT NULL,
    queue      TEXT NOT NULL,
    gpu        INTEGER NOT NULL,
    gpu_memory INTEGER NOT NULL,
    cpu        INTEGER NOT NULL,
    memory     INTEGER NOT NULL,
    PRIMARY KEY (day, tenant, queue)
) STRICT, WITHOUT ROWID;

-- Notifications that are to be delivered, written with what they tell of.
CREATE TABLE outbox (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook  TEXT NOT NULL,
    at       INTEGER NOT NULL,
    due      INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    event    TEXT NOT NULL,
    job      INTEGER NOT NULL,
    body     TEXT NOT NULL
) STRICT;
CREATE INDEX outbox_by_due ON outbox (webhook, due);

-- How deliveries to each webhook went.
CREATE TABLE webhooks (
    webhook   TEXT PRIMARY KEY,
    delivered INTEGER NOT NULL,
    given_up  INTEGER NOT NULL,
    last      INTEGER,
    error     TEXT,
    error_at  INTEGER
) STRICT, WITHOUT ROWID;
