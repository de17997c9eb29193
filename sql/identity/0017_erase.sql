-- Everything that is known of a person, and its erasure (docs/rules.md, rule 10).

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
        told = '{}',
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

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA identity FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    person(text[], text, text[], text[]),
    person_rows(text[], text, text[], text[]),
    erase(text[], text, text[], text[])
TO streakline_leads, streakline_leads_api;
