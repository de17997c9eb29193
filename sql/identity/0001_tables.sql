-- Who is who. A lead is a person; leads that turned out to be one form a group, named by its root, which
-- is its oldest lead. Nothing is moved when leads merge: only root_id changes, and every change is kept.

CREATE SEQUENCE lead_number;

-- is_root and root_is_root make groups flat by constraint: a lead's root is a root.
CREATE TABLE lead (
    lead_id bigint PRIMARY KEY,
    root_id bigint NOT NULL CHECK (root_id <= lead_id),
    created_at timestamptz NOT NULL,
    is_root boolean NOT NULL GENERATED ALWAYS AS (lead_id = root_id) STORED,
    root_is_root boolean NOT NULL GENERATED ALWAYS AS (true) STORED,
    UNIQUE (lead_id, is_root),
    FOREIGN KEY (root_id, root_is_root) REFERENCES lead (lead_id, is_root) DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX lead_by_root ON lead (root_id);

-- is_shared: a thing of several people; its lead is of that thing alone and never merges.
CREATE TABLE channel_identity (
    channel text NOT NULL CHECK (channel <> ''),
    external_id text NOT NULL CHECK (external_id <> ''),
    lead_id bigint NOT NULL REFERENCES lead,
    is_shared boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (channel, external_id)
);
CREATE INDEX channel_identity_by_lead ON channel_identity (lead_id);

-- A lead as one organization knows it. number: age; in an organization, the root of a group is the oldest.
CREATE TABLE lead_organization (
    lead_organization_id text PRIMARY KEY DEFAULT gen_random_uuid()::text,
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE,
    lead_id bigint NOT NULL REFERENCES lead,
    organization_id text NOT NULL CHECK (organization_id <> ''),
    created_at timestamptz NOT NULL,
    UNIQUE (lead_id, organization_id)
);

-- Audit and outbox. leads: all leads of the groups it touched. via: the leads whose identities came
-- together. announcement: for each affected organization how its groups are after it,
-- {organization: [{"root", "leaves"}]}; empty where nobody is affected. A reason to keep groups apart is
-- noted once for the same groups.
CREATE TABLE identity_change (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('merged', 'joined', 'unmerged', 'refused')),
    leads bigint[] NOT NULL CHECK (cardinality(leads) > 0),
    via bigint[] NOT NULL DEFAULT '{}',
    evidence jsonb NOT NULL,
    announcement jsonb NOT NULL DEFAULT '{}',
    at timestamptz NOT NULL,
    announced_at timestamptz,
    reversed_by bigint UNIQUE REFERENCES identity_change,
    CHECK (announced_at IS NOT NULL OR announcement <> '{}'),
    CHECK (reversed_by IS NULL OR (kind = 'merged' AND reversed_by > number))
);
CREATE UNIQUE INDEX identity_change_refused ON identity_change (leads) WHERE kind = 'refused';
CREATE INDEX identity_change_pending ON identity_change (number) WHERE announced_at IS NULL;
CREATE INDEX identity_change_by_lead ON identity_change USING gin (leads);

-- Which leads a change moved, and from which root to which.
CREATE TABLE change_lead (
    number bigint NOT NULL REFERENCES identity_change,
    lead_id bigint NOT NULL REFERENCES lead,
    root_before bigint NOT NULL REFERENCES lead,
    root_after bigint NOT NULL REFERENCES lead CHECK (root_after <> root_before),
    PRIMARY KEY (number, lead_id)
);
CREATE INDEX change_lead_by_lead ON change_lead (lead_id);
