-- What was changed: told, undone, looked up.

CREATE FUNCTION announced(p_numbers bigint[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = identity, pg_temp AS $$
    UPDATE identity_change SET announced_at = greatest(at, now())
    WHERE number = ANY (p_numbers) AND announced_at IS NULL
$$;

-- The oldest changes that not everybody has been told of.
CREATE FUNCTION pending(p_limit int) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = identity, pg_temp AS $$
    SELECT coalesce(jsonb_agg(jsonb_build_object(
        'number', c.number, 'kind', c.kind, 'at', c.at, 'announcement', c.announcement) ORDER BY c.number), '[]')
    FROM (SELECT * FROM identity_change WHERE announced_at IS NULL ORDER BY number LIMIT p_limit) AS c
$$;

-- Undoes a merge exactly: each lead gets back the root that it had. Refused with no_data_found or
-- object_not_in_prerequisite_state and a reason. Returns all that is to be announced of these leads.
CREATE FUNCTION unmerge(p_number bigint, p_evidence jsonb, p_now timestamptz) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = identity, pg_temp AS $$
DECLARE
    v_change identity_change;
    v_root bigint;
    v_moved bigint[];
    v_back bigint[];
    v_group bigint[];
    v_later bigint;
BEGIN
    SELECT * INTO v_change FROM identity_change WHERE number = p_number FOR NO KEY UPDATE;
    IF v_change.number IS NULL OR v_change.kind <> 'merged' THEN
        RAISE EXCEPTION 'change % is no merge', p_number USING ERRCODE = 'no_data_found';
    ELSIF v_change.reversed_by IS NOT NULL THEN
        RAISE EXCEPTION 'change % has been undone by change %', p_number, v_change.reversed_by
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    SELECT array_agg(lead_id ORDER BY lead_id), array_agg(root_before ORDER BY lead_id), min(root_after)
    INTO v_moved, v_back, v_root FROM change_lead WHERE number = p_number;
    -- Whoever changes this group, or moved it elsewhere, holds or held the lock of its root.
    PERFORM FROM lead AS l WHERE l.lead_id = v_root FOR NO KEY UPDATE;
    SELECT min(c.number) INTO v_later FROM identity_change AS c
    WHERE c.number > p_number AND c.kind = 'merged' AND c.reversed_by IS NULL AND (
        c.via && v_moved
        OR EXISTS (SELECT FROM change_lead AS m WHERE m.number = c.number AND m.lead_id = ANY (v_moved)));
    IF v_later IS NOT NULL THEN
        RAISE EXCEPTION 'change % builds on change %: undo it first', v_later, p_number
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    v_group := group_of(v_root);
    IF NOT v_group @> v_moved THEN
        RAISE EXCEPTION 'the leads of change % are elsewhere by now', p_number
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    UPDATE identity_change SET reversed_by = move_leads('unmerged', v_moved, v_back, v_group, '{}', p_evidence, p_now)
    WHERE number = p_number;
    RETURN pending_of(v_group);
END $$;

-- All changes of a lead's group members so far that concern this lead, oldest first.
CREATE FUNCTION history(p_lead_organization text) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = identity, pg_temp AS $$
    SELECT coalesce(jsonb_agg(jsonb_build_object(
        'number', c.number, 'kind', c.kind, 'at', c.at, 'leads', c.leads, 'evidence', c.evidence,
        'announced_at', c.announced_at, 'reversed_by', c.reversed_by) ORDER BY c.number), '[]')
    FROM lead_organization AS o JOIN identity_change AS c ON c.leads @> ARRAY[o.lead_id]
    WHERE o.lead_organization_id = p_lead_organization
$$;
