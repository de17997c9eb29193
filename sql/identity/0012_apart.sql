-- The functions, for organizations that are kept apart, and for identities that are proven or only claimed.
DROP FUNCTION resolve(text, text[], text[], int, timestamptz);
DROP FUNCTION agreed(text[], text[], int);
DROP FUNCTION facts(text[], text[], text[]);
DROP FUNCTION roots_of(text[], text[]);
DROP FUNCTION lock_identities(text[], text[]);
DROP FUNCTION new_lead(timestamptz);
DROP FUNCTION unmerge(bigint, jsonb, timestamptz);
DROP FUNCTION history(text);
DROP FUNCTION announcement(bigint[], bigint[]);
DROP FUNCTION move_leads(text, bigint[], bigint[], bigint[], bigint[], jsonb, timestamptz);
DROP FUNCTION note_change(text, bigint[], bigint[], jsonb, jsonb, timestamptz);
DROP FUNCTION note_refusal(jsonb, bigint, jsonb, timestamptz);
DROP FUNCTION announced(bigint[]);

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

CREATE FUNCTION new_lead(p_organization text, p_now timestamptz) RETURNS bigint
LANGUAGE sql SET search_path = identity, pg_temp AS $$
    INSERT INTO lead (lead_id, root_id, organization_id, created_at)
    SELECT n, n, p_organization, p_now FROM nextval('lead_number') AS n
    RETURNING lead_id
$$;

-- What is to be told of a change, as the consumer reads it.
CREATE FUNCTION shown(p_change identity_change) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = identity, pg_temp AS $$
    SELECT jsonb_build_object(
        'number', p_change.number, 'organization', p_change.organization_id, 'kind', p_change.kind,
        'at', p_change.at, 'announcement', p_change.announcement, 'told', p_change.told)
$$;

CREATE OR REPLACE FUNCTION pending_of(p_leads bigint[]) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = identity, pg_temp AS $$
    SELECT coalesce(jsonb_agg(shown(c) ORDER BY c.number), '[]')
    FROM identity_change AS c
    WHERE c.announced_at IS NULL AND c.leads && p_leads
$$;

CREATE OR REPLACE FUNCTION pending(p_limit int) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = identity, pg_temp AS $$
    SELECT coalesce(jsonb_agg(o.told ORDER BY o.number), '[]')
    FROM (
        SELECT c.number, shown(c) AS told FROM identity_change AS c
        WHERE c.announced_at IS NULL ORDER BY c.number LIMIT p_limit
    ) AS o
$$;

CREATE FUNCTION announced(p_organizations text[], p_numbers bigint[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = identity, pg_temp AS $$
    UPDATE identity_change AS c SET announced_at = greatest(c.at, now())
    FROM unnest(p_organizations, p_numbers) AS e (organization_id, number)
    WHERE c.organization_id = e.organization_id AND c.number = e.number AND c.announced_at IS NULL
$$;

-- The lead that known identities agree on; null where a decision is needed, as it is to prove what was claimed.
-- is_known: none (0), some (1) or all (2) of them are.
CREATE FUNCTION agreed(
    p_organization text, p_channels text[], p_ids text[], p_strong int, p_verified boolean,
    OUT is_known int, OUT lead_id bigint
) LANGUAGE sql STABLE SET search_path = identity, pg_temp AS $$
    SELECT
        CASE count(c.lead_id) WHEN 0 THEN 0 WHEN count(*) THEN 2 ELSE 1 END,
        CASE
            WHEN count(c.lead_id) < count(*) THEN NULL
            WHEN p_strong = 0 THEN (array_agg(c.lead_id ORDER BY c.is_shared, e.place))[1]
            WHEN p_verified AND NOT bool_and(c.is_verified) FILTER (WHERE e.place <= p_strong) THEN NULL
            WHEN count(DISTINCT l.root_id) FILTER (WHERE NOT c.is_shared) = 1
                AND NOT bool_and(c.is_shared) FILTER (WHERE e.place <= p_strong)
            THEN (array_agg(c.lead_id ORDER BY c.is_shared, e.place))[1]
        END
    FROM unnest(p_channels, p_ids) WITH ORDINALITY AS e (channel, external_id, place)
    LEFT JOIN channel_identity AS c
        ON c.organization_id = p_organization AND c.channel = e.channel AND c.external_id = e.external_id
    LEFT JOIN lead AS l USING (lead_id)
$$;

-- Identities by precedence, the first p_strong of them strong, these all verified or all claimed, and all such
-- that one lead may have them. Returns null where a decision is needed.
CREATE FUNCTION resolve(
    p_organization text, p_channels text[], p_ids text[], p_strong int, p_verified boolean, p_now timestamptz
) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = identity, pg_temp AS $$
DECLARE
    v_known int;
    v_lead bigint;
BEGIN
    SELECT a.is_known, a.lead_id INTO v_known, v_lead
    FROM agreed(p_organization, p_channels, p_ids, p_strong, p_verified) AS a;
    IF v_known = 0 THEN
        PERFORM lock_identities(p_organization, p_channels, p_ids);
        SELECT a.is_known, a.lead_id INTO v_known, v_lead
        FROM agreed(p_organization, p_channels, p_ids, p_strong, p_verified) AS a;
    END IF;
    IF v_known = 0 THEN
        v_lead := new_lead(p_organization, p_now);
        INSERT INTO channel_identity (organization_id, channel, external_id, lead_id, is_verified, created_at)
        SELECT p_organization, e.channel, e.external_id, v_lead, p_verified AND e.place <= p_strong, p_now
        FROM unnest(p_channels, p_ids) WITH ORDINALITY AS e (channel, external_id, place);
    ELSIF v_lead IS NULL THEN
        RETURN NULL;
    END IF;
    INSERT INTO lead_organization (lead_id, organization_id, created_at)
    SELECT v_lead, p_organization, p_now
    WHERE NOT EXISTS (SELECT FROM lead_organization AS o WHERE o.lead_id = v_lead)
    ON CONFLICT (lead_id, organization_id) DO NOTHING;
    RETURN resolution(p_organization, v_lead);
END $$;

CREATE FUNCTION roots_of(p_organization text, p_channels text[], p_ids text[]) RETURNS bigint[]
LANGUAGE sql STABLE SET search_path = identity, pg_temp AS $$
    SELECT coalesce(array_agg(DISTINCT l.root_id ORDER BY l.root_id), '{}')
    FROM unnest(p_channels, p_ids) AS e (channel, external_id)
    JOIN channel_identity AS c USING (channel, external_id) JOIN lead AS l USING (lead_id)
    WHERE c.organization_id = p_organization
$$;

-- What an organization knows of some identities and of their groups, all locked until the transaction ends.
-- Identities are locked before roots, and each in one order, so nobody waits in a circle. A group that
-- changed while it was waited for: serialization_failure, to be tried again from the start.
CREATE FUNCTION facts(p_organization text, p_channels text[], p_ids text[], p_strong_channels text[]) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = identity, pg_temp AS $$
DECLARE
    v_before bigint[];
    v_after bigint[];
BEGIN
    PERFORM lock_identities(p_organization, p_channels, p_ids);
    v_before := roots_of(p_organization, p_channels, p_ids);
    PERFORM FROM lead AS l WHERE l.lead_id = ANY (v_before) ORDER BY l.lead_id FOR NO KEY UPDATE;
    v_after := roots_of(p_organization, p_channels, p_ids);
    IF v_before <> v_after THEN
        RAISE EXCEPTION 'groups changed meanwhile' USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN jsonb_build_object(
        'known', (
            SELECT coalesce(jsonb_agg(jsonb_build_array(
                c.channel, c.external_id, c.lead_id, l.root_id, c.is_shared, c.is_verified, c.typed_for)), '[]')
            FROM unnest(p_channels, p_ids) AS e (channel, external_id)
            JOIN channel_identity AS c USING (channel, external_id) JOIN lead AS l USING (lead_id)
            WHERE c.organization_id = p_organization),
        'held', (
            SELECT coalesce(jsonb_agg(jsonb_build_array(l.root_id, c.channel, c.external_id, c.is_verified)), '[]')
            FROM lead AS l JOIN channel_identity AS c USING (lead_id)
            WHERE l.root_id = ANY (v_after) AND c.channel = ANY (p_strong_channels) AND NOT c.is_shared),
        'apart', apart(v_after));
END $$;

-- How the groups of some leads are: {organization: [{"root", "leaves"}]}; {} if nobody has heard of both sides,
-- those among p_moved and the others.
CREATE FUNCTION announcement(p_organization text, p_leads bigint[], p_moved bigint[]) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = identity, pg_temp AS $$
    WITH known AS (
        SELECT l.root_id, o.lead_organization_id, o.number, l.lead_id = ANY (p_moved) AS is_moved
        FROM lead AS l JOIN lead_organization AS o USING (lead_id) WHERE l.lead_id = ANY (p_leads)
    ), groups AS (
        SELECT min(number) AS age, jsonb_build_object(
            'root', (array_agg(lead_organization_id ORDER BY number))[1],
            'leaves', jsonb_agg(lead_organization_id ORDER BY number)) AS told
        FROM known GROUP BY root_id
    )
    SELECT CASE WHEN (SELECT bool_or(is_moved) AND NOT bool_and(is_moved) FROM known)
        THEN jsonb_build_object(p_organization, (SELECT jsonb_agg(told ORDER BY age) FROM groups)) ELSE '{}' END
$$;

-- A change that nobody has heard of both sides of has nobody to be announced to.
CREATE FUNCTION note_change(
    p_organization text, p_kind text, p_leads bigint[], p_via bigint[], p_evidence jsonb, p_announcement jsonb,
    p_told jsonb, p_now timestamptz
) RETURNS bigint LANGUAGE sql SET search_path = identity, pg_temp AS $$
    INSERT INTO identity_change (organization_id, kind, leads, via, evidence, announcement, told, at, announced_at)
    VALUES (p_organization, p_kind, p_leads, p_via, p_evidence, p_announcement, p_told, p_now,
        CASE p_announcement WHEN '{}' THEN p_now END)
    RETURNING number
$$;

-- Moves leads (each to its root of p_roots) and notes it. p_touched: all leads of the groups concerned.
-- p_told: what the event that announces it says besides the groups.
CREATE FUNCTION move_leads(
    p_organization text, p_kind text, p_moved bigint[], p_roots bigint[], p_touched bigint[], p_via bigint[],
    p_evidence jsonb, p_told jsonb, p_now timestamptz
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
    v_number := note_change(p_organization, p_kind, p_touched, p_via, p_evidence,
        announcement(p_organization, p_touched, p_moved), p_told, p_now);
    INSERT INTO change_lead (organization_id, number, lead_id, root_before, root_after)
    SELECT p_organization, v_number, m.lead_id, m.root_before, m.root_after
    FROM unnest(p_moved, v_before, p_roots) AS m (lead_id, root_before, root_after);
    RETURN v_number;
END $$;

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

-- Applies a plan, whose lead 0 is one to create, in the transaction that has read the facts.
CREATE OR REPLACE FUNCTION apply(p_organization text, p_plan jsonb, p_evidence jsonb, p_now timestamptz) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = identity, pg_temp AS $$
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
