CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The journal. Entries stay for the retention, also those that a snapshot
-- covers: they are the history of each job and what a replay folds.
CREATE TABLE entries (
    seq   INTEGER PRIMARY KEY,
    at    INTEGER NOT NULL,
    event TEXT NOT NULL
) STRICT;

CREATE TABLE snapshots (
    seq  INTEGER PRIMARY KEY,
    at   INTEGER NOT NULL,
    hash BLOB NOT NULL,
    body BLOB NOT NULL
) STRICT;

-- One row for each job, as the books have or had it last.
CREATE TABLE jobs (
    uid         INTEGER PRIMARY KEY,
    name        TEXT NOT NULL,
    queue       TEXT NOT NULL,
    tenant      TEXT NOT NULL,
    kind        TEXT NOT NULL,
    priority    INTEGER NOT NULL,
    state       TEXT NOT NULL,
    submitted   INTEGER NOT NULL,
    placed      INTEGER,
    started     INTEGER,
    ended       INTEGER,
    attempts    INTEGER NOT NULL,
    preemptions INTEGER NOT NULL,
    reason      TEXT NOT NULL,
    gpu         INTEGER,
    nodes       TEXT NOT NULL,
    spec        TEXT NOT NULL
) STRICT;
CREATE INDEX jobs_by_name ON jobs (name);
CREATE INDEX jobs_by_queue ON jobs (queue);
CREATE INDEX jobs_by_tenant ON jobs (tenant);
CREATE INDEX jobs_by_state ON jobs (state);
CREATE INDEX jobs_by_end ON jobs (ended) WHERE ended IS NOT NULL;

-- Which entries concern a job.
CREATE TABLE job_entries (
    job INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (job, seq)
) STRICT, WITHOUT ROWID;

-- The last few decisions on each job.
CREATE TABLE decisions (
    job    INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    seed   INTEGER NOT NULL,
    engine TEXT NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (job, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    hash      BLOB NOT NULL UNIQUE,
    name      TEXT NOT NULL,
    role      TEXT NOT NULL,
    tenant    TEXT,
    created   INTEGER NOT NULL,
    expires   INTEGER,
    revoked   INTEGER,
    last_used INTEGER
) STRICT;

-- What a client's own key led to, so that a repeated submission is one.
CREATE TABLE submissions (
    scope   TEXT NOT NULL,
    key     TEXT NOT NULL,
    request BLOB NOT NULL,
    job     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX submissions_by_age ON submissions (at);
