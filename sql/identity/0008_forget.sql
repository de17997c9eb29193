-- A smoke test removes the leads that it made: those that its organization alone knows, and no change touched.
-- Returns how many leads of the organization are left.
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
        SELECT o.lead_id FROM lead_organization AS o
        WHERE o.organization_id = p_organization
            AND NOT EXISTS (
                SELECT FROM lead_organization AS other
                WHERE other.lead_id = o.lead_id AND other.organization_id <> p_organization)
            AND NOT EXISTS (SELECT FROM identity_change AS c WHERE c.leads @> ARRAY[o.lead_id])
            AND NOT EXISTS (SELECT FROM lead AS l WHERE l.root_id = o.lead_id AND l.lead_id <> o.lead_id));
    DELETE FROM lead_organization WHERE lead_id = ANY (v_leads);
    DELETE FROM channel_identity WHERE lead_id = ANY (v_leads);
    DELETE FROM lead WHERE lead_id = ANY (v_leads);
    RETURN (SELECT count(*) FROM lead_organization WHERE organization_id = p_organization);
END $$;

REVOKE ALL ON FUNCTION forget(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION forget(text) TO streakline_leads, streakline_leads_api;
