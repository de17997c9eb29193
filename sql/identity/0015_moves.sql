-- A change tells whom it moved, and notes whom it concerns: neither grows with the groups that it touches.

-- To which roots a change moved leads: {organization: [{"root", "leaves"}]}; {} if nobody has heard of both sides,
-- those among p_moved and the others. A root is among its leaves. Leads that were not moved are told only if the
-- oldest of all was: then they have another root, too.
CREATE OR REPLACE FUNCTION announcement(p_organization text, p_leads bigint[], p_moved bigint[]) RETURNS jsonb
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
                FILTER (WHERE is_moved OR all_moved OR number = oldest)) AS told
        FROM known GROUP BY oldest
    )
    SELECT CASE WHEN (SELECT bool_or(is_moved) AND NOT bool_and(is_moved) FROM known)
        THEN jsonb_build_object(p_organization, (SELECT jsonb_agg(told ORDER BY oldest) FROM groups)) ELSE '{}' END
$$;

-- As before, but the change is noted with the leads that it moved, the roots that they left and came to, and those of
-- its evidence. p_touched: all leads of the groups concerned.
CREATE OR REPLACE FUNCTION move_leads(
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
    v_number := note_change(p_organization, p_kind,
        ARRAY(SELECT DISTINCT c FROM unnest(p_moved || v_before || p_roots || p_via) AS c ORDER BY c),
        p_via, p_evidence, announcement(p_organization, p_touched, p_moved), p_told, p_now);
    INSERT INTO change_lead (organization_id, number, lead_id, root_before, root_after)
    SELECT p_organization, v_number, m.lead_id, m.root_before, m.root_after
    FROM unnest(p_moved, v_before, p_roots) AS m (lead_id, root_before, root_after);
    RETURN v_number;
END $$;
