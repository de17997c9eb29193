-- What an operator does: undo, merge by hand, unite what was kept apart, look up.

-- The change that an operator means. Without an organization the number must tell: changes of before
-- organizations were kept apart may share one.
CREATE FUNCTION change_named(p_organization text, p_number bigint) RETURNS identity_change
LANGUAGE plpgsql SET search_path = identity, pg_temp AS $$
DECLARE
    v_change identity_change;
    v_organizations text[];
BEGIN
    v_organizations := ARRAY(
        SELECT c.organization_id FROM identity_change AS c
        WHERE c.number = p_number AND c.kind = 'merged' AND c.organization_id = coalesce(p_organization, c.organization_id)
        ORDER BY 1);
    IF cardinality(v_organizations) = 0 THEN
        RAISE EXCEPTION 'change % is no merge', p_number USING ERRCODE = 'no_data_found';
    ELSIF cardinality(v_organizations) > 1 THEN
        RAISE EXCEPTION 'change % is one of several organizations: say which', p_number USING ERRCODE = 'no_data_found';
    END IF;
    SELECT * INTO v_change FROM identity_change AS c
    WHERE c.organization_id = v_organizations[1] AND c.number = p_number FOR NO KEY UPDATE;
    RETURN v_change;
END $$;

-- Undoes a merge exactly: each lead gets back the root that it had, and the two groups are kept apart. Refused with
-- no_data_found or object_not_in_prerequisite_state and a reason. Returns all that is to be announced of these leads.
CREATE FUNCTION unmerge(p_organization text, p_number bigint, p_told jsonb, p_now timestamptz) RETURNS jsonb
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
        RAISE EXCEPTION 'change % has been undone by change %', p_number, v_change.reversed_by
            USING ERRCODE = 'object_not_in_prerequisite_state';
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
    v_undoing := move_leads(v_organization, 'unmerged', v_moved, v_back, v_group, '{}', p_told, p_told, p_now);
    UPDATE identity_change SET reversed_by = v_undoing WHERE organization_id = v_organization AND number = p_number;
    INSERT INTO kept_apart (organization_id, number, lead_id, is_moved)
    SELECT v_organization, v_undoing, g.lead_id, g.lead_id = ANY (v_moved) FROM unnest(v_group) AS g (lead_id);
    RETURN pending_of(v_group);
END $$;

-- Merges the groups of two leads because an operator says so. p_told: {"reason", "by"}. What an undoing keeps apart
-- is united only if p_unite is true; that undoing then keeps nobody apart any more. Refused as unmerge is. Returns
-- {"number", "changes"}: the change, null if they were one already, and all that is to be announced.
-- p_organizations: those that the caller reaches; null: all.
CREATE FUNCTION merge_by_hand(
    p_organizations text[], p_one text, p_other text, p_told jsonb, p_unite boolean, p_now timestamptz
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
        p_told || jsonb_build_object('united', to_jsonb(v_partings)), p_told, p_now);
    RETURN jsonb_build_object('number', v_number, 'changes', pending_of(v_moved));
END $$;

-- The lead that has an identity: {"lead", "root", "is_verified"}. Null if nobody has it, or many do.
CREATE FUNCTION lookup(p_organization text, p_channel text, p_id text) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = identity, pg_temp AS $$
    SELECT jsonb_build_object('lead', r->'leaf', 'root', r->'root', 'is_verified', c.is_verified)
    FROM channel_identity AS c, resolution(p_organization, c.lead_id) AS r
    WHERE c.organization_id = p_organization AND c.channel = p_channel AND c.external_id = p_id AND NOT c.is_shared
        AND r IS NOT NULL
$$;

-- All changes of a lead's group members so far that concern this lead, oldest first; null for an unknown lead.
-- p_organizations: as above.
CREATE FUNCTION history(p_organizations text[], p_lead_organization text) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = identity, pg_temp AS $$
    SELECT coalesce(jsonb_agg(jsonb_build_object(
        'number', c.number, 'kind', c.kind, 'at', c.at, 'leads', c.leads, 'evidence', c.evidence,
        'announced_at', c.announced_at, 'reversed_by', c.reversed_by) ORDER BY c.number)
        FILTER (WHERE c.number IS NOT NULL), '[]')
    FROM lead_organization AS o LEFT JOIN identity_change AS c ON c.leads @> ARRAY[o.lead_id]
    WHERE o.lead_organization_id = p_lead_organization
        AND (p_organizations IS NULL OR o.organization_id = ANY (p_organizations))
    GROUP BY o.lead_organization_id
$$;

-- A smoke test removes the leads that it made, but for those that a change touched. Returns how many are left.
CREATE OR REPLACE FUNCTION forget(p_organization text) RETURNS bigint
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

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA identity FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    resolve(text, text[], text[], int, boolean, timestamptz),
    facts(text, text[], text[], text[]),
    apply(text, jsonb, jsonb, timestamptz),
    announced(text[], bigint[]),
    pending(int),
    unmerge(text, bigint, jsonb, timestamptz),
    merge_by_hand(text[], text, text, jsonb, boolean, timestamptz),
    lookup(text, text, text),
    history(text[], text),
    forget(text)
TO streakline_leads, streakline_leads_api;
