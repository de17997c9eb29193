-- Who is who (docs/rules.md, rule 10). A lead is a person as one organization knows it. Leads that turned out to be one
-- form a group, named by its root, which is its oldest lead. Nothing is moved when leads merge: only root_id changes,
-- and every change is kept. Each organization has leads and identities of its own.

CREATE SEQUENCE lead_number;
-- next
-- is_root and root_is_root make groups flat by constraint: a lead's root is a root.
CREATE TABLE lead (
    lead_id bigint PRIMARY KEY,
    root_id bigint NOT NULL CHECK (root_id <= lead_id),
    organization_id text NOT NULL CHECK (organization_id <> ''),
    created_at timestamptz NOT NULL,
    is_root boolean NOT NULL GENERATED ALWAYS AS (lead_id = root_id) STORED,
    root_is_root boolean NOT NULL GENERATED ALWAYS AS (true) STORED,
    UNIQUE (lead_id, is_root),
    UNIQUE (organization_id, lead_id),
    FOREIGN KEY (root_id, root_is_root) REFERENCES lead (lead_id, is_root) DEFERRABLE INITIALLY DEFERRED,
    FOREIGN KEY (organization_id, root_id) REFERENCES lead (organization_id, lead_id) DEFERRABLE INITIALLY DEFERRED
);
-- next
CREATE INDEX lead_by_root ON lead (root_id);
-- next
-- is_shared: a thing of several people; its lead is of that thing alone and never merges. is_verified: a source has
-- proven it; if not, somebody has claimed it. typed_for: other leads that a claimed identity was typed for.
CREATE TABLE channel_identity (
    organization_id text NOT NULL,
    channel text NOT NULL CHECK (channel <> ''),
    external_id text NOT NULL CHECK (external_id <> ''),
    lead_id bigint NOT NULL,
    is_shared boolean NOT NULL DEFAULT false,
    is_verified boolean NOT NULL,
    typed_for bigint[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, channel, external_id),
    FOREIGN KEY (organization_id, lead_id) REFERENCES lead (organization_id, lead_id)
);
-- next
CREATE INDEX channel_identity_by_lead ON channel_identity (lead_id);
-- next
-- The public name of a lead. number: age; the root of a group is the oldest.
CREATE TABLE lead_organization (
    lead_organization_id text PRIMARY KEY DEFAULT gen_random_uuid()::text,
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE,
    lead_id bigint NOT NULL,
    organization_id text NOT NULL,
    created_at timestamptz NOT NULL,
    UNIQUE (lead_id, organization_id),
    FOREIGN KEY (organization_id, lead_id) REFERENCES lead (organization_id, lead_id)
);
-- next
-- Audit and outbox. leads: those that a change concerns. via: the leads whose identities came together. announcement:
-- how the organization's groups are after it, {organization: [{"root", "leaves"}]}; empty where nobody is affected.
-- note: what the event that announces a change says besides its groups. A reason to keep groups apart is noted once for
-- the same groups.
CREATE TABLE identity_change (
    organization_id text NOT NULL,
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE,
    kind text NOT NULL CHECK (kind IN ('merged', 'unmerged', 'refused')),
    leads bigint[] NOT NULL CHECK (cardinality(leads) > 0),
    via bigint[] NOT NULL DEFAULT '{}',
    evidence jsonb NOT NULL,
    announcement jsonb NOT NULL DEFAULT '{}',
    note jsonb NOT NULL DEFAULT '{}',
    at timestamptz NOT NULL,
    announced_at timestamptz,
    reversed_by bigint,
    PRIMARY KEY (organization_id, number),
    UNIQUE (organization_id, number, kind),
    UNIQUE (organization_id, reversed_by),
    FOREIGN KEY (organization_id, reversed_by) REFERENCES identity_change (organization_id, number)
        DEFERRABLE INITIALLY DEFERRED,
    CHECK (announced_at IS NOT NULL OR announcement <> '{}'),
    CHECK (reversed_by IS NULL OR (kind = 'merged' AND reversed_by > number))
);
-- next
CREATE UNIQUE INDEX identity_change_refused ON identity_change (organization_id, leads, (evidence->>'reason'))
    WHERE kind = 'refused';
-- next
CREATE INDEX identity_change_pending ON identity_change (number) WHERE announced_at IS NULL;
-- next
CREATE INDEX identity_change_by_lead ON identity_change USING gin (leads);
-- next
-- Which leads a change moved, and from which root to which.
CREATE TABLE change_lead (
    organization_id text NOT NULL,
    number bigint NOT NULL,
    lead_id bigint NOT NULL,
    root_before bigint NOT NULL,
    root_after bigint NOT NULL CHECK (root_after <> root_before),
    PRIMARY KEY (organization_id, number, lead_id),
    FOREIGN KEY (organization_id, number) REFERENCES identity_change,
    FOREIGN KEY (organization_id, lead_id) REFERENCES lead (organization_id, lead_id),
    FOREIGN KEY (organization_id, root_before) REFERENCES lead (organization_id, lead_id),
    FOREIGN KEY (organization_id, root_after) REFERENCES lead (organization_id, lead_id)
);
-- next
CREATE INDEX change_lead_by_lead ON change_lead (lead_id);
-- next
-- What an operator has parted stays parted: no event joins a lead of one side with a lead of the other. number: the
-- undoing. is_moved: on which of its two sides a lead is kept; all leads of both groups as they stood after it. Two
-- leads are kept apart where they are on different sides of one undoing.
CREATE TABLE kept_apart (
    organization_id text NOT NULL,
    number bigint NOT NULL,
    lead_id bigint NOT NULL,
    is_moved boolean NOT NULL,
    kind text NOT NULL GENERATED ALWAYS AS ('unmerged') STORED,
    PRIMARY KEY (organization_id, number, lead_id),
    FOREIGN KEY (organization_id, number, kind) REFERENCES identity_change (organization_id, number, kind),
    FOREIGN KEY (organization_id, lead_id) REFERENCES lead (organization_id, lead_id)
);
-- next
CREATE INDEX kept_apart_by_lead ON kept_apart (lead_id);
-- next
-- The decision refuses such merges; should it ever plan one, the schema refuses it.
CREATE FUNCTION refuse_kept_apart() RETURNS trigger
LANGUAGE plpgsql SET search_path = identity, pg_temp AS $$
DECLARE v_number bigint;
BEGIN
    SELECT mine.number INTO v_number
    FROM kept_apart AS mine JOIN kept_apart AS theirs USING (number) JOIN lead AS l ON l.lead_id = theirs.lead_id
    WHERE mine.lead_id = NEW.lead_id AND theirs.is_moved <> mine.is_moved AND l.root_id = NEW.root_id LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'lead % is kept apart from group % by change %', NEW.lead_id, NEW.root_id, v_number
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
-- next
CREATE TRIGGER lead_kept_apart AFTER UPDATE OF root_id ON lead FOR EACH ROW EXECUTE FUNCTION refuse_kept_apart();
-- next
-- ---- parts of what follows

-- Locks identities until the transaction ends, in one order for everybody. They need not exist.
CREATE FUNCTION lock_identities(p_organization text, p_channels text[], p_ids text[]) RETURNS void
LANGUAGE plpgsql SET search_path = identity, pg_temp AS $$
DECLARE key bigint;
BEGIN
    FOR key IN
        SELECT DISTINCT hashtextextended(p_organization || '/' || e.channel || '/' || e.external_id, 20240607)
        FROM unnest(p_channels, p_ids) AS e (channel, external_id) ORDER BY 1
    LOOP
        PERFORM pg_advisory_xact_lock(key);
    END LOOP;
END $$;
-- next
CREATE FUNCTION new_lead(p_organization text, p_now timestamptz) RETURNS bigint
LANGUAGE sql SET search_path = identity, pg_temp AS $$
    INSERT INTO lead (lead_id, root_id, organization_id, created_at)
    SELECT n, n, p_organization, p_now FROM nextval('lead_number') AS n
    RETURNING lead_id
$$;
-- next
CREATE FUNCTION group_of(p_lead bigint) RETURNS bigint[]
LANGUAGE sql STABLE SET search_path = identity, pg_temp AS $$
    SELECT array_agg(l.lead_id ORDER BY l.lead_id) FROM lead AS l JOIN lead AS this USING (root_id)
    WHERE this.lead_id = p_lead
$$;
-- next
-- Pairs of some roots whose groups are kept apart.
CREATE FUNCTION apart(p_roots bigint[]) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = identity, pg_temp AS $$
    WITH side AS (
        SELECT DISTINCT k.number, k.is_moved, l.root_id FROM lead AS l JOIN kept_apart AS k USING (lead_id)
        WHERE l.root_id = ANY (p_roots)
    )
    SELECT coalesce(jsonb_agg(DISTINCT jsonb_build_array(one.root_id, other.root_id)), '[]')
    FROM side AS one JOIN side AS other USING (number) WHERE one.is_moved AND NOT other.is_moved
$$;
-- next
-- A change that is still to be announced, as the consumer reads it.
CREATE FUNCTION pending_change(p_change identity_change) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = identity, pg_temp AS $$
    SELECT jsonb_build_object(
        'number', p_change.number, 'organization', p_change.organization_id, 'kind', p_change.kind,
        'at', p_change.at, 'announcement', p_change.announcement, 'note', p_change.note)
$$;
-- next
-- The changes of some leads that are not announced yet, oldest first.
CREATE FUNCTION pending_of(p_leads bigint[]) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = identity, pg_temp AS $$
    SELECT coalesce(jsonb_agg(pending_change(c) ORDER BY c.number), '[]')
    FROM identity_change AS c
    WHERE c.announced_at IS NULL AND c.leads && p_leads
$$;
-- next
-- What a caller learns of a leaf; null if the organization does not know that lead yet.
CREATE FUNCTION resolution(p_organization text, p_lead bigint) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = identity, pg_temp AS $$
    SELECT jsonb_build_object(
        'lead_id', p_lead,
        'leaf', leaf.lead_organization_id,
        'root', (
            SELECT o.lead_organization_id FROM lead AS l JOIN lead_organization AS o USING (lead_id)
            WHERE l.root_id = this.root_id AND o.organization_id = p_organization
            ORDER BY o.number LIMIT 1),
        'changes', pending_of(ARRAY(SELECT l.lead_id FROM lead AS l WHERE l.root_id = this.root_id)))
    FROM lead AS this JOIN lead_organization AS leaf USING (lead_id)
    WHERE this.lead_id = p_lead AND leaf.organization_id = p_organization
$$;
-- next
-- To which roots a change moved leads: {organization: [{"root", "leaves"}]}; {} if nobody has heard of both sides,
-- those among p_moved and the others. A root is among its leaves. Leads that were not moved are named only if the
-- oldest of all was: then they have another root, too.
CREATE FUNCTION announcement(p_organization text, p_leads bigint[], p_moved bigint[]) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = identity, pg_temp AS $$
    WITH known AS (
        SELECT o.lead_organization_id, o.number, l.lead_id = ANY (p_moved) AS is_moved,
            min(o.number) OVER (PARTITION BY l.root_id) AS oldest,
            first_value(l.lead_id = ANY (p_moved)) OVER (ORDER BY o.number) AS all_moved
        FROM lead AS l JOIN lead_organization AS o USING (lead_id) WHERE l.lead_id = ANY (p_leads)
    ), groups AS (
        SELECT oldest, jsonb_build_object(
            'root', (array_agg(lead_organization_id ORDER BY number))[1],
            'leaves', jsonb_agg(lead_organization_id ORDER BY number)
                FILTER (WHERE is_moved OR all_moved OR number = oldest)) AS moves
        FROM known GROUP BY oldest
    )
    SELECT CASE WHEN (SELECT bool_or(is_moved) AND NOT bool_and(is_moved) FROM known)
        THEN jsonb_build_object(p_organization, (SELECT jsonb_agg(moves ORDER BY oldest) FROM groups)) ELSE '{}' END
$$;
-- next
-- A change that nobody has heard of both sides of has nobody to be announced to.
CREATE FUNCTION note_change(
    p_organization text, p_kind text, p_leads bigint[], p_via bigint[], p_evidence jsonb, p_announcement jsonb,
    p_note jsonb, p_now timestamptz
) RETURNS bigint LANGUAGE sql SET search_path = identity, pg_temp AS $$
    INSERT INTO identity_change (organization_id, kind, leads, via, evidence, announcement, note, at, announced_at)
    VALUES (p_organization, p_kind, p_leads, p_via, p_evidence, p_announcement, p_note, p_now,
        CASE p_announcement WHEN '{}' THEN p_now END)
    RETURNING number
$$;
-- next
-- Moves leads (each to its root of p_roots) and notes the change with the leads that it moved, the roots that they left
-- and came to, and those of its evidence. p_touched: all leads of the groups concerned.
CREATE FUNCTION move_leads(
    p_organization text, p_kind text, p_moved bigint[], p_roots bigint[], p_touched bigint[], p_via bigint[],
    p_evidence jsonb, p_note jsonb, p_now timestamptz
) RETURNS bigint LANGUAGE plpgsql SET search_path = identity, pg_temp AS $$
DECLARE
    v_before bigint[];
    v_number bigint;
BEGIN
    v_before := ARRAY(
        SELECT l.root_id FROM unnest(p_moved) WITH ORDINALITY AS m (lead_id, place) JOIN lead AS l USING (lead_id)
        ORDER BY m.place);
    UPDATE lead AS l SET root_id = m.root_id FROM unnest(p_moved, p_roots) AS m (lead_id, root_id)
    WHERE l.lead_id = m.lead_id;
    v_number := note_change(p_organization, p_kind,
        ARRAY(SELECT DISTINCT c FROM unnest(p_moved || v_before || p_roots || p_via) AS c ORDER BY c),
        p_via, p_evidence, announcement(p_organization, p_touched, p_moved), p_note, p_now);
    INSERT INTO change_lead (organization_id, number, lead_id, root_before, root_after)
    SELECT p_organization, v_number, m.lead_id, m.root_before, m.root_after
    FROM unnest(p_moved, v_before, p_roots) AS m (lead_id, root_before, root_after);
    RETURN v_number;
END $$;
-- next
-- p_refusal: {"reason", "roots"}, where root 0 is p_home. Noted once for the same groups and reason.
CREATE FUNCTION note_refusal(
    p_organization text, p_refusal jsonb, p_home bigint, p_evidence jsonb, p_now timestamptz
) RETURNS void LANGUAGE plpgsql SET search_path = identity, pg_temp AS $$
DECLARE
    v_reason text := p_refusal->>'reason';
    v_leads bigint[];
BEGIN
    v_leads := ARRAY(
        SELECT DISTINCT l.root_id FROM jsonb_array_elements_text(p_refusal->'roots') AS r
        JOIN lead AS l ON l.lead_id = coalesce(nullif(r::bigint, 0), p_home) ORDER BY l.root_id);
    IF NOT EXISTS (
        SELECT FROM identity_change AS c
        WHERE c.organization_id = p_organization AND c.kind = 'refused' AND c.leads = v_leads
            AND c.evidence->>'reason' = v_reason) THEN
        PERFORM note_change(p_organization, 'refused', v_leads, '{}',
            p_evidence || jsonb_build_object('reason', v_reason), '{}', '{}', p_now);
    END IF;
END $$;
-- next
-- ---- whose event it is: one statement reads the facts, rules/leads/identity.py plans, another one applies the plan

-- What an organization knows of some identities and of their groups at one instant. Nothing is locked.
CREATE FUNCTION facts_of(p_organization text, p_channels text[], p_ids text[], p_strong_channels text[])
RETURNS jsonb LANGUAGE sql STABLE SET search_path = identity, pg_temp AS $$
    WITH known AS (
        SELECT c.channel, c.external_id, c.lead_id, l.root_id, c.is_shared, c.is_verified, c.typed_for
        FROM unnest(p_channels, p_ids) AS e (channel, external_id)
        JOIN channel_identity AS c USING (channel, external_id) JOIN lead AS l USING (lead_id)
        WHERE c.organization_id = p_organization
    ), roots AS (
        SELECT coalesce(array_agg(DISTINCT root_id ORDER BY root_id), '{}') AS ids FROM known
    )
    SELECT jsonb_build_object(
        'known', (
            SELECT coalesce(jsonb_agg(jsonb_build_array(
                k.channel, k.external_id, k.lead_id, k.root_id, k.is_shared, k.is_verified, k.typed_for)
                ORDER BY k.channel, k.external_id), '[]')
            FROM known AS k),
        'strong', (
            SELECT coalesce(jsonb_agg(jsonb_build_array(l.root_id, c.channel, c.external_id, c.is_verified)
                ORDER BY l.root_id, c.channel, c.external_id), '[]')
            FROM lead AS l JOIN channel_identity AS c USING (lead_id)
            WHERE l.root_id = ANY (roots.ids) AND c.channel = ANY (p_strong_channels) AND NOT c.is_shared),
        'apart', apart(roots.ids))
    FROM roots
$$;
-- next
-- {"facts"}, with the "resolutions" of the leads among them by lead: a plan that changes nothing needs no other statement.
CREATE FUNCTION facts(p_organization text, p_channels text[], p_ids text[], p_strong_channels text[]) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = identity, pg_temp AS $$
    SELECT jsonb_build_object(
        'facts', f.facts,
        'resolutions', (
            SELECT coalesce(jsonb_object_agg(k.lead_id, resolution(p_organization, k.lead_id::bigint)), '{}')
            FROM (SELECT DISTINCT e->>2 AS lead_id FROM jsonb_array_elements(f.facts->'known') AS e) AS k))
    FROM (SELECT facts_of(p_organization, p_channels, p_ids, p_strong_channels) AS facts OFFSET 0) AS f
$$;
-- next
-- Applies a plan, whose lead 0 is one to create.
CREATE FUNCTION apply_plan(p_organization text, p_plan jsonb, p_evidence jsonb, p_now timestamptz) RETURNS jsonb
LANGUAGE plpgsql SET search_path = identity, pg_temp AS $$
DECLARE
    v_home bigint := (p_plan->>'lead')::bigint;
    v_each jsonb;
    v_moved bigint[];
BEGIN
    IF v_home = 0 THEN
        v_home := new_lead(p_organization, p_now);
    END IF;
    INSERT INTO channel_identity (organization_id, channel, external_id, lead_id, is_verified, created_at)
    SELECT p_organization, e->>0, e->>1, v_home, (e->>2)::boolean, p_now
    FROM jsonb_array_elements(p_plan->'attach') AS e;
    FOR v_each IN SELECT * FROM jsonb_array_elements(p_plan->'shares') LOOP
        UPDATE channel_identity SET is_shared = true, lead_id = new_lead(p_organization, p_now)
        WHERE organization_id = p_organization AND channel = v_each->>0 AND external_id = v_each->>1 AND NOT is_shared;
    END LOOP;
    UPDATE channel_identity AS c SET is_verified = true, typed_for = '{}'
    FROM jsonb_array_elements(p_plan->'proves') AS e
    WHERE c.organization_id = p_organization AND c.channel = e->>0 AND c.external_id = e->>1;
    UPDATE channel_identity AS c SET is_verified = true, is_shared = false, typed_for = '{}', lead_id = v_home
    FROM jsonb_array_elements(p_plan->'takes') AS e
    WHERE c.organization_id = p_organization AND c.channel = e->>0 AND c.external_id = e->>1;
    UPDATE channel_identity AS c SET typed_for = c.typed_for || v_home
    FROM jsonb_array_elements(p_plan->'typed') AS e
    WHERE c.organization_id = p_organization AND c.channel = e->>0 AND c.external_id = e->>1;
    INSERT INTO lead_organization (lead_id, organization_id, created_at) VALUES (v_home, p_organization, p_now)
    ON CONFLICT (lead_id, organization_id) DO NOTHING;
    FOR v_each IN SELECT * FROM jsonb_array_elements(p_plan->'merges') LOOP
        v_moved := group_of(coalesce(nullif((v_each->>'absorbed')::bigint, 0), v_home));
        PERFORM move_leads(
            p_organization, 'merged', v_moved, array_fill((v_each->>'into')::bigint, ARRAY[cardinality(v_moved)]),
            v_moved || group_of((v_each->>'into')::bigint),
            ARRAY(SELECT coalesce(nullif(l::bigint, 0), v_home) FROM jsonb_array_elements_text(v_each->'via') AS l),
            p_evidence, '{}', p_now);
    END LOOP;
    FOR v_each IN SELECT * FROM jsonb_array_elements(p_plan->'refused') LOOP
        PERFORM note_refusal(p_organization, v_each, v_home, p_evidence, p_now);
    END LOOP;
    RETURN resolution(p_organization, v_home);
END $$;
-- next
-- Applies a plan that was made of p_facts, and answers the "resolution". If the facts have changed, nothing is applied,
-- and the answer is what `facts` says now. Identities are locked before roots, and each in one order, so nobody waits in
-- a circle. Facts that are the same under these locks stay the same until this statement ends.
CREATE FUNCTION apply(
    p_organization text, p_channels text[], p_ids text[], p_strong_channels text[], p_facts jsonb, p_plan jsonb,
    p_evidence jsonb, p_now timestamptz
) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = identity, pg_temp AS $$
BEGIN
    PERFORM lock_identities(p_organization, p_channels, p_ids);
    PERFORM FROM lead AS l
    WHERE l.lead_id IN (SELECT (e->>3)::bigint FROM jsonb_array_elements(p_facts->'known') AS e)
    ORDER BY l.lead_id FOR NO KEY UPDATE;
    IF facts_of(p_organization, p_channels, p_ids, p_strong_channels) <> p_facts THEN
        RETURN facts(p_organization, p_channels, p_ids, p_strong_channels);
    END IF;
    RETURN jsonb_build_object('resolution', apply_plan(p_organization, p_plan, p_evidence, p_now));
END $$;
-- next
-- ---- the outbox

-- The changes that are not announced yet, oldest first.
CREATE FUNCTION pending(p_limit int) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = identity, pg_temp AS $$
    SELECT coalesce(jsonb_agg(o.change ORDER BY o.number), '[]')
    FROM (
        SELECT c.number, pending_change(c) AS change FROM identity_change AS c
        WHERE c.announced_at IS NULL ORDER BY c.number LIMIT p_limit
    ) AS o
$$;
-- next
-- Notes that changes have been announced.
CREATE FUNCTION announced(p_organizations text[], p_numbers bigint[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = identity, pg_temp AS $$
    UPDATE identity_change AS c SET announced_at = greatest(c.at, now())
    FROM unnest(p_organizations, p_numbers) AS e (organization_id, number)
    WHERE c.organization_id = e.organization_id AND c.number = e.number AND c.announced_at IS NULL
$$;
-- next
-- ---- what an operator does: undo, merge by hand, unite what was kept apart, look up

-- The change that an operator means, locked. p_organization: null for whoever reaches all.
CREATE FUNCTION change_named(p_organization text, p_number bigint) RETURNS identity_change
LANGUAGE plpgsql SET search_path = identity, pg_temp AS $$
DECLARE
    v_change identity_change;
BEGIN
    SELECT * INTO v_change FROM identity_change AS c
    WHERE c.number = p_number AND c.kind = 'merged' AND c.organization_id = coalesce(p_organization, c.organization_id)
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'change % is no merge', p_number USING ERRCODE = 'no_data_found';
    END IF;
    RETURN v_change;
END $$;
-- next
-- Undoes a merge exactly: each lead gets back the root that it had, and the two groups are kept apart. Refused with
-- no_data_found, object_not_in_prerequisite_state or 55UND (already undone), and a reason. Returns all that is to be
-- announced of these leads.
CREATE FUNCTION unmerge(p_organization text, p_number bigint, p_note jsonb, p_now timestamptz) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = identity, pg_temp AS $$
DECLARE
    v_change identity_change := change_named(p_organization, p_number);
    v_organization text := v_change.organization_id;
    v_root bigint;
    v_moved bigint[];
    v_back bigint[];
    v_group bigint[];
    v_later bigint;
    v_undoing bigint;
BEGIN
    IF v_change.reversed_by IS NOT NULL THEN
        -- A code of our own, of the class of object_not_in_prerequisite_state: the caller already has what it asks for.
        RAISE EXCEPTION 'change % has been undone by change %', p_number, v_change.reversed_by USING ERRCODE = '55UND';
    END IF;
    SELECT array_agg(lead_id ORDER BY lead_id), array_agg(root_before ORDER BY lead_id), min(root_after)
    INTO v_moved, v_back, v_root FROM change_lead WHERE organization_id = v_organization AND number = p_number;
    -- Whoever changes this group, or moved it elsewhere, holds or held the lock of its root.
    PERFORM FROM lead AS l WHERE l.lead_id = v_root FOR NO KEY UPDATE;
    SELECT min(c.number) INTO v_later FROM identity_change AS c
    WHERE c.organization_id = v_organization AND c.number > p_number AND c.kind = 'merged' AND c.reversed_by IS NULL AND (
        c.via && v_moved
        OR EXISTS (
            SELECT FROM change_lead AS m
            WHERE m.organization_id = v_organization AND m.number = c.number AND m.lead_id = ANY (v_moved)));
    IF v_later IS NOT NULL THEN
        RAISE EXCEPTION 'change % builds on change %: undo it first', v_later, p_number
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    v_group := group_of(v_root);
    IF NOT v_group @> v_moved THEN
        RAISE EXCEPTION 'the leads of change % are elsewhere by now', p_number
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    v_undoing := move_leads(v_organization, 'unmerged', v_moved, v_back, v_group, '{}', p_note, p_note, p_now);
    UPDATE identity_change SET reversed_by = v_undoing WHERE organization_id = v_organization AND number = p_number;
    INSERT INTO kept_apart (organization_id, number, lead_id, is_moved)
    SELECT v_organization, v_undoing, g.lead_id, g.lead_id = ANY (v_moved) FROM unnest(v_group) AS g (lead_id);
    RETURN pending_of(v_group);
END $$;
-- next
-- Merges the groups of two leads because an operator says so. p_note: {"reason", "by"}. What an undoing keeps apart
-- is united only if p_unite is true; that undoing then keeps nobody apart any more. Refused as unmerge is. Returns
-- {"number", "changes"}: the change, null if they were one already, and all that is to be announced.
-- p_organizations: those that the caller reaches; null: all.
CREATE FUNCTION merge_by_hand(
    p_organizations text[], p_one text, p_other text, p_note jsonb, p_unite boolean, p_now timestamptz
) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = identity, pg_temp AS $$
DECLARE
    v_organization text;
    v_leads bigint[];
    v_roots bigint[];
    v_moved bigint[];
    v_partings bigint[];
    v_number bigint;
BEGIN
    SELECT min(o.organization_id), array_agg(o.lead_id ORDER BY o.lead_id) INTO v_organization, v_leads
    FROM lead_organization AS o
    WHERE o.lead_organization_id IN (p_one, p_other)
        AND (p_organizations IS NULL OR o.organization_id = ANY (p_organizations))
    HAVING count(*) = 2 AND count(DISTINCT o.organization_id) = 1;
    IF v_leads IS NULL THEN
        RAISE EXCEPTION 'there are no such two leads of one organization' USING ERRCODE = 'no_data_found';
    END IF;
    v_roots := ARRAY(SELECT DISTINCT l.root_id FROM lead AS l WHERE l.lead_id = ANY (v_leads) ORDER BY 1);
    PERFORM FROM lead AS l WHERE l.lead_id = ANY (v_roots) ORDER BY l.lead_id FOR NO KEY UPDATE;
    IF v_roots <> ARRAY(SELECT DISTINCT l.root_id FROM lead AS l WHERE l.lead_id = ANY (v_leads) ORDER BY 1) THEN
        RAISE EXCEPTION 'groups changed meanwhile' USING ERRCODE = 'serialization_failure';
    END IF;
    IF cardinality(v_roots) = 1 THEN
        RETURN jsonb_build_object('number', NULL, 'changes', pending_of(group_of(v_roots[1])));
    END IF;
    v_partings := ARRAY(
        SELECT DISTINCT mine.number FROM kept_apart AS mine
        JOIN kept_apart AS theirs USING (organization_id, number)
        WHERE mine.organization_id = v_organization AND mine.lead_id = ANY (group_of(v_roots[1]))
            AND theirs.lead_id = ANY (group_of(v_roots[2])) AND theirs.is_moved <> mine.is_moved ORDER BY 1);
    IF v_partings <> '{}' AND NOT p_unite THEN
        RAISE EXCEPTION 'change % keeps them apart', v_partings[1] USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    DELETE FROM kept_apart AS k WHERE k.organization_id = v_organization AND k.number = ANY (v_partings);
    v_moved := group_of(v_roots[2]);
    v_number := move_leads(
        v_organization, 'merged', v_moved, array_fill(v_roots[1], ARRAY[cardinality(v_moved)]),
        v_moved || group_of(v_roots[1]), v_leads,
        p_note || jsonb_build_object('united', to_jsonb(v_partings)), p_note, p_now);
    RETURN jsonb_build_object('number', v_number, 'changes', pending_of(v_moved));
END $$;
-- next
-- The changes of a lead's group members that concern this lead, newest first, at most p_limit; null for an unknown lead.
-- p_organizations: those that the caller reaches; null: all. p_before: the number that they are before; null: any.
CREATE FUNCTION history(p_organizations text[], p_lead_organization text, p_before bigint, p_limit int) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = identity, pg_temp AS $$
    SELECT (
        SELECT coalesce(jsonb_agg(jsonb_build_object(
            'number', c.number, 'kind', c.kind, 'at', c.at, 'leads', c.leads, 'evidence', c.evidence,
            'announced_at', c.announced_at, 'reversed_by', c.reversed_by) ORDER BY c.number DESC), '[]')
        FROM (
            SELECT * FROM identity_change AS i
            WHERE i.leads @> ARRAY[o.lead_id] AND (p_before IS NULL OR i.number < p_before)
            ORDER BY i.number + 0 DESC LIMIT p_limit  -- not by the index of numbers: it has everybody's
        ) AS c)
    FROM lead_organization AS o
    WHERE o.lead_organization_id = p_lead_organization
        AND (p_organizations IS NULL OR o.organization_id = ANY (p_organizations))
$$;
-- next
-- The lead that has an identity: {"lead", "root", "is_verified"}. Null if nobody has it, or many do.
CREATE FUNCTION lookup(p_organization text, p_channel text, p_id text) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = identity, pg_temp AS $$
    SELECT jsonb_build_object('lead', r->'leaf', 'root', r->'root', 'is_verified', c.is_verified)
    FROM channel_identity AS c, resolution(p_organization, c.lead_id) AS r
    WHERE c.organization_id = p_organization AND c.channel = p_channel AND c.external_id = p_id AND NOT c.is_shared
        AND r IS NOT NULL
$$;
-- next
-- ---- everything that is known of a person, and its erasure

-- The leads of a person: the groups of some leads, and those that have some identities by now. An identity that
-- several share leads to nobody.
CREATE FUNCTION leads_of_person(p_leads text[], p_organization text, p_channels text[], p_ids text[])
RETURNS bigint[] LANGUAGE sql STABLE SET search_path = identity, pg_temp AS $$
    SELECT coalesce(array_agg(m.lead_id ORDER BY m.lead_id), '{}') FROM lead AS m WHERE m.root_id IN (
        SELECT l.root_id FROM lead_organization AS o JOIN lead AS l USING (lead_id)
        WHERE o.lead_organization_id = ANY (p_leads)
        UNION ALL
        SELECT l.root_id
        FROM unnest(p_channels, p_ids) AS e (channel, external_id)
        JOIN channel_identity AS c USING (channel, external_id) JOIN lead AS l USING (lead_id)
        WHERE c.organization_id = p_organization AND NOT c.is_shared)
$$;
-- next
-- {"organization", "leads": [lead_organization_id], "identities": [[channel, external_id]]}
CREATE FUNCTION person(p_leads text[], p_organization text, p_channels text[], p_ids text[])
RETURNS jsonb LANGUAGE sql STABLE SECURITY DEFINER SET search_path = identity, pg_temp AS $$
    WITH found AS (SELECT leads_of_person(p_leads, p_organization, p_channels, p_ids) AS ids)
    SELECT jsonb_build_object(
        'organization', (SELECT min(l.organization_id) FROM lead AS l WHERE l.lead_id = ANY (found.ids)),
        'leads', (
            SELECT coalesce(jsonb_agg(o.lead_organization_id ORDER BY o.number), '[]')
            FROM lead_organization AS o WHERE o.lead_id = ANY (found.ids)),
        'identities', (
            SELECT coalesce(jsonb_agg(jsonb_build_array(c.channel, c.external_id) ORDER BY c.channel, c.external_id), '[]')
            FROM channel_identity AS c WHERE c.lead_id = ANY (found.ids) AND NOT c.is_shared))
    FROM found
$$;
-- next
-- How many rows tell of a person.
CREATE FUNCTION person_rows(p_leads text[], p_organization text, p_channels text[], p_ids text[])
RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER SET search_path = identity, pg_temp AS $$
    WITH found AS (SELECT leads_of_person(p_leads, p_organization, p_channels, p_ids) AS ids)
    SELECT (SELECT count(*) FROM lead AS l WHERE l.lead_id = ANY (found.ids))
        + (SELECT count(*) FROM lead_organization AS o WHERE o.lead_id = ANY (found.ids))
        + (SELECT count(*) FROM channel_identity AS c WHERE c.lead_id = ANY (found.ids))
        + (SELECT count(*) FROM identity_change AS c WHERE c.leads && found.ids)
    FROM found
$$;
-- next
-- Deletes all of it. Of a change that concerns others, too, it stays that there was one; what proved it and who it was
-- about goes.
CREATE FUNCTION erase(p_leads text[], p_organization text, p_channels text[], p_ids text[])
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = identity, pg_temp AS $$
DECLARE
    v_leads bigint[];
BEGIN
    v_leads := leads_of_person(p_leads, p_organization, p_channels, p_ids);
    IF v_leads = '{}' THEN
        RETURN 0;
    END IF;
    PERFORM FROM lead AS l WHERE l.lead_id = ANY (v_leads) ORDER BY l.lead_id FOR UPDATE;
    DELETE FROM kept_apart WHERE lead_id = ANY (v_leads);
    DELETE FROM change_lead
    WHERE lead_id = ANY (v_leads) OR root_before = ANY (v_leads) OR root_after = ANY (v_leads);
    DELETE FROM identity_change AS c
    WHERE c.leads && v_leads AND (c.leads <@ v_leads OR c.kind = 'refused')
        AND NOT EXISTS (
            SELECT FROM identity_change AS o
            WHERE o.organization_id = c.organization_id AND o.reversed_by = c.number AND NOT o.leads <@ v_leads)
        AND NOT EXISTS (
            SELECT FROM kept_apart AS k WHERE k.organization_id = c.organization_id AND k.number = c.number)
        AND NOT EXISTS (
            SELECT FROM change_lead AS k WHERE k.organization_id = c.organization_id AND k.number = c.number);
    UPDATE identity_change AS c SET
        evidence = jsonb_build_object('reason', 'erased'),
        note = '{}',
        announcement = '{}',
        announced_at = coalesce(c.announced_at, c.at),
        via = ARRAY(SELECT v FROM unnest(c.via) AS v WHERE v <> ALL (v_leads)),
        leads = CASE WHEN c.leads <@ v_leads THEN '{0}'
            ELSE ARRAY(SELECT v FROM unnest(c.leads) AS v WHERE v <> ALL (v_leads)) END
    WHERE c.leads && v_leads;
    UPDATE channel_identity AS c SET typed_for = ARRAY(SELECT v FROM unnest(c.typed_for) AS v WHERE v <> ALL (v_leads))
    WHERE c.organization_id = p_organization AND c.typed_for && v_leads;
    DELETE FROM lead_organization WHERE lead_id = ANY (v_leads);
    DELETE FROM channel_identity WHERE lead_id = ANY (v_leads);
    DELETE FROM lead WHERE lead_id = ANY (v_leads);
    RETURN cardinality(v_leads);
END $$;
-- next
-- A smoke test removes the leads that it made, but for those that a change touched. Returns how many are left.
CREATE FUNCTION forget(p_organization text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = identity, pg_temp AS $$
DECLARE
    v_leads bigint[];
BEGIN
    IF p_organization !~ '^smoke-[0-9a-f]{12}$' THEN
        RAISE EXCEPTION '% is no organization of a smoke test', p_organization
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    v_leads := ARRAY(
        SELECT this.lead_id FROM lead AS this
        WHERE this.organization_id = p_organization
            AND NOT EXISTS (SELECT FROM identity_change AS c WHERE c.leads @> ARRAY[this.lead_id])
            AND NOT EXISTS (SELECT FROM lead AS l WHERE l.root_id = this.lead_id AND l.lead_id <> this.lead_id));
    DELETE FROM lead_organization WHERE lead_id = ANY (v_leads);
    DELETE FROM channel_identity WHERE organization_id = p_organization AND lead_id = ANY (v_leads);
    DELETE FROM lead WHERE lead_id = ANY (v_leads);
    RETURN (SELECT count(*) FROM lead_organization WHERE organization_id = p_organization);
END $$;
-- next
-- ---- who may call it

-- The application's roles may call these functions, which run as their owner, and see nothing else. Timeouts hang on the
-- roles because RDS Proxy takes no startup options, and a SET would pin its sessions. On AWS streakline_leads signs in by
-- IAM (rds_iam), and such a role may have no password. streakline_leads_api is for the RDS Data API, which signs in by a
-- password. It cannot sign in until somebody gives it one: ingest/leads/identity_migration.py does.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'streakline_leads') THEN
        CREATE ROLE streakline_leads LOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'streakline_leads_api') THEN
        CREATE ROLE streakline_leads_api LOGIN;
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'rds_iam') THEN
        GRANT rds_iam TO streakline_leads;
    END IF;
END $$;
-- next
ALTER ROLE streakline_leads SET statement_timeout = '3s';
-- next
ALTER ROLE streakline_leads SET lock_timeout = '2s';
-- next
ALTER ROLE streakline_leads SET idle_in_transaction_session_timeout = '5s';
-- next
ALTER ROLE streakline_leads_api SET statement_timeout = '3s';
-- next
ALTER ROLE streakline_leads_api SET lock_timeout = '2s';
-- next
ALTER ROLE streakline_leads_api SET idle_in_transaction_session_timeout = '5s';
-- next
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA identity FROM PUBLIC;
-- next
GRANT USAGE ON SCHEMA identity TO streakline_leads, streakline_leads_api;
-- next
GRANT EXECUTE ON FUNCTION
    facts(text, text[], text[], text[]),
    apply(text, text[], text[], text[], jsonb, jsonb, jsonb, timestamptz),
    announced(text[], bigint[]),
    pending(int),
    unmerge(text, bigint, jsonb, timestamptz),
    merge_by_hand(text[], text, text, jsonb, boolean, timestamptz),
    lookup(text, text, text),
    history(text[], text, bigint, int),
    person(text[], text, text[], text[]),
    person_rows(text[], text, text[], text[]),
    erase(text[], text, text[], text[]),
    forget(text)
TO streakline_leads, streakline_leads_api;
