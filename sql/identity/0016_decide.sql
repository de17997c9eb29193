-- A decision in two statements, without a transaction around them: the first reads, the second applies what was
-- decided, if all still is as it was read. If it is not, the second reads, too, and the caller decides again.

-- What an organization knows of some identities and of their groups at one instant. Nothing is locked.
CREATE FUNCTION facts_seen(p_organization text, p_channels text[], p_ids text[], p_strong_channels text[])
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
        'held', (
            SELECT coalesce(jsonb_agg(jsonb_build_array(l.root_id, c.channel, c.external_id, c.is_verified)
                ORDER BY l.root_id, c.channel, c.external_id), '[]')
            FROM lead AS l JOIN channel_identity AS c USING (lead_id)
            WHERE l.root_id = ANY (roots.ids) AND c.channel = ANY (p_strong_channels) AND NOT c.is_shared),
        'apart', apart(roots.ids))
    FROM roots
$$;

-- What `resolve` answers, as "resolution"; where it needs a decision, what there is to decide on, as "facts".
-- p_may_resolve: whether resolve may be asked, see there.
CREATE FUNCTION resolve_or_facts(
    p_organization text, p_channels text[], p_ids text[], p_strong int, p_verified boolean, p_may_resolve boolean,
    p_strong_channels text[], p_now timestamptz
) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = identity, pg_temp AS $$
DECLARE
    v_resolution jsonb;
BEGIN
    IF p_may_resolve THEN
        v_resolution := resolve(p_organization, p_channels, p_ids, p_strong, p_verified, p_now);
    END IF;
    IF v_resolution IS NOT NULL THEN
        RETURN jsonb_build_object('resolution', v_resolution);
    END IF;
    RETURN jsonb_build_object('facts', facts_seen(p_organization, p_channels, p_ids, p_strong_channels));
END $$;

-- Applies a plan that was made of p_facts, and answers the "resolution"; if the facts have changed, nothing is
-- applied, and the answer is the "facts" of now. `facts` takes the locks; until this statement ends nobody else can
-- change what it has read.
CREATE FUNCTION apply_to_facts(
    p_organization text, p_channels text[], p_ids text[], p_strong_channels text[], p_facts jsonb, p_plan jsonb,
    p_evidence jsonb, p_now timestamptz
) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = identity, pg_temp AS $$
DECLARE
    v_facts jsonb;
BEGIN
    PERFORM facts(p_organization, p_channels, p_ids, p_strong_channels);
    v_facts := facts_seen(p_organization, p_channels, p_ids, p_strong_channels);
    IF v_facts <> p_facts THEN
        RETURN jsonb_build_object('facts', v_facts);
    END IF;
    RETURN jsonb_build_object('resolution', apply(p_organization, p_plan, p_evidence, p_now));
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA identity FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    resolve_or_facts(text, text[], text[], int, boolean, boolean, text[], timestamptz),
    apply_to_facts(text, text[], text[], text[], jsonb, jsonb, jsonb, timestamptz)
TO streakline_leads, streakline_leads_api;
