-- Everything else: read under locks, decide (rules/identity_plan.py), apply. Two statements of one transaction.

-- What is known of some identities and of their groups, all locked until the transaction ends.
-- Identities are locked before roots, and each in one order, so nobody waits in a circle. A group that
-- changed while it was waited for: serialization_failure, to be tried again from the start.
CREATE FUNCTION facts(p_channels text[], p_ids text[], p_strong_channels text[]) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = identity, pg_temp AS $$
DECLARE
    v_before bigint[];
    v_after bigint[];
BEGIN
    PERFORM lock_identities(p_channels, p_ids);
    v_before := roots_of(p_channels, p_ids);
    PERFORM FROM lead AS l WHERE l.lead_id = ANY (v_before) ORDER BY l.lead_id FOR NO KEY UPDATE;
    v_after := roots_of(p_channels, p_ids);
    IF v_before <> v_after THEN
        RAISE EXCEPTION 'groups changed meanwhile' USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN jsonb_build_object(
        'known', (
            SELECT coalesce(jsonb_agg(jsonb_build_array(
                c.channel, c.external_id, c.lead_id, l.root_id, c.is_shared)), '[]')
            FROM unnest(p_channels, p_ids) AS e (channel, external_id)
            JOIN channel_identity AS c USING (channel, external_id) JOIN lead AS l USING (lead_id)),
        'held', (
            SELECT coalesce(jsonb_agg(jsonb_build_array(l.root_id, c.channel, c.external_id)), '[]')
            FROM lead AS l JOIN channel_identity AS c USING (lead_id)
            WHERE l.root_id = ANY (v_after) AND c.channel = ANY (p_strong_channels)));
END $$;

CREATE FUNCTION roots_of(p_channels text[], p_ids text[]) RETURNS bigint[]
LANGUAGE sql STABLE SET search_path = identity, pg_temp AS $$
    SELECT coalesce(array_agg(DISTINCT l.root_id ORDER BY l.root_id), '{}')
    FROM unnest(p_channels, p_ids) AS e (channel, external_id)
    JOIN channel_identity AS c USING (channel, external_id) JOIN lead AS l USING (lead_id)
$$;

-- How the groups of some leads are in each organization: {organization: [{"root", "leaves"}]}. Only
-- organizations that know leads on both sides: among p_moved and among the others.
CREATE FUNCTION announcement(p_leads bigint[], p_moved bigint[]) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = identity, pg_temp AS $$
    WITH known AS (
        SELECT o.organization_id, l.root_id, o.lead_organization_id, o.number, l.lead_id = ANY (p_moved) AS is_moved
        FROM lead AS l JOIN lead_organization AS o USING (lead_id) WHERE l.lead_id = ANY (p_leads)
    ), groups AS (
        SELECT organization_id, min(number) AS age, jsonb_build_object(
            'root', (array_agg(lead_organization_id ORDER BY number))[1],
            'leaves', jsonb_agg(lead_organization_id ORDER BY number)) AS told
        FROM known GROUP BY organization_id, root_id
    ), affected AS (
        SELECT organization_id FROM known GROUP BY organization_id HAVING bool_or(is_moved) AND NOT bool_and(is_moved)
    ), organizations AS (
        SELECT organization_id, jsonb_agg(told ORDER BY age) AS told
        FROM groups JOIN affected USING (organization_id) GROUP BY organization_id
    )
    SELECT coalesce(jsonb_object_agg(organization_id, told), '{}') FROM organizations
$$;

CREATE FUNCTION group_of(p_lead bigint) RETURNS bigint[]
LANGUAGE sql STABLE SET search_path = identity, pg_temp AS $$
    SELECT array_agg(l.lead_id ORDER BY l.lead_id) FROM lead AS l JOIN lead AS this USING (root_id)
    WHERE this.lead_id = p_lead
$$;

-- Moves leads (each to its root of p_roots) and notes it. p_touched: all leads of the groups concerned.
CREATE FUNCTION move_leads(
    p_kind text, p_moved bigint[], p_roots bigint[], p_touched bigint[], p_via bigint[], p_evidence jsonb,
    p_now timestamptz
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
    v_number := note_change(p_kind, p_touched, p_via, p_evidence, announcement(p_touched, p_moved), p_now);
    INSERT INTO change_lead (number, lead_id, root_before, root_after)
    SELECT v_number, m.lead_id, m.root_before, m.root_after
    FROM unnest(p_moved, v_before, p_roots) AS m (lead_id, root_before, root_after);
    RETURN v_number;
END $$;

-- A change that affects no organization has nobody to be announced to.
CREATE FUNCTION note_change(
    p_kind text, p_leads bigint[], p_via bigint[], p_evidence jsonb, p_announcement jsonb, p_now timestamptz
) RETURNS bigint LANGUAGE sql SET search_path = identity, pg_temp AS $$
    INSERT INTO identity_change (kind, leads, via, evidence, announcement, at, announced_at)
    VALUES (p_kind, p_leads, p_via, p_evidence, p_announcement, p_now, CASE p_announcement WHEN '{}' THEN p_now END)
    RETURNING number
$$;

-- Applies a plan, whose lead 0 is one to create, in the transaction that has read the facts.
CREATE FUNCTION apply(p_organization text, p_plan jsonb, p_evidence jsonb, p_now timestamptz) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = identity, pg_temp AS $$
DECLARE
    v_home bigint := (p_plan->>'lead')::bigint;
    v_each jsonb;
    v_leads bigint[];
    v_moved bigint[];
    v_told jsonb;
BEGIN
    IF v_home = 0 THEN
        v_home := new_lead(p_now);
    END IF;
    INSERT INTO channel_identity (channel, external_id, lead_id, created_at)
    SELECT e->>0, e->>1, v_home, p_now FROM jsonb_array_elements(p_plan->'attach') AS e;
    FOR v_each IN SELECT * FROM jsonb_array_elements(p_plan->'shares') LOOP
        UPDATE channel_identity SET is_shared = true, lead_id = new_lead(p_now)
        WHERE channel = v_each->>0 AND external_id = v_each->>1 AND NOT is_shared;
    END LOOP;
    INSERT INTO lead_organization (lead_id, organization_id, created_at) VALUES (v_home, p_organization, p_now)
    ON CONFLICT (lead_id, organization_id) DO NOTHING;
    IF FOUND THEN
        v_leads := group_of(v_home);
        v_told := announcement(v_leads, ARRAY[v_home])->p_organization;
        IF v_told IS NOT NULL THEN
            PERFORM note_change(
                'joined', v_leads, '{}', p_evidence, jsonb_build_object(p_organization, v_told), p_now);
        END IF;
    END IF;
    FOR v_each IN SELECT * FROM jsonb_array_elements(p_plan->'merges') LOOP
        v_moved := group_of(coalesce(nullif((v_each->>'absorbed')::bigint, 0), v_home));
        PERFORM move_leads(
            'merged', v_moved, array_fill((v_each->>'into')::bigint, ARRAY[cardinality(v_moved)]),
            v_moved || group_of((v_each->>'into')::bigint),
            ARRAY(SELECT coalesce(nullif(l::bigint, 0), v_home) FROM jsonb_array_elements_text(v_each->'via') AS l),
            p_evidence, p_now);
    END LOOP;
    v_leads := ARRAY(
        SELECT DISTINCT l.root_id FROM jsonb_array_elements_text(p_plan->'refused') AS r
        JOIN lead AS l ON l.lead_id = coalesce(nullif(r::bigint, 0), v_home) ORDER BY l.root_id);
    IF v_leads <> '{}' AND NOT EXISTS (SELECT FROM identity_change WHERE kind = 'refused' AND leads = v_leads) THEN
        PERFORM note_change('refused', v_leads, '{}', p_evidence, '{}', p_now);
    END IF;
    RETURN resolution(p_organization, v_home);
END $$;
