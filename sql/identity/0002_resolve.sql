-- The everyday path, in one statement: all identities known and agreeing, or none known.

-- Locks identities until the transaction ends, in one order for everybody. They need not exist.
CREATE FUNCTION lock_identities(p_channels text[], p_ids text[]) RETURNS void
LANGUAGE plpgsql SET search_path = identity, pg_temp AS $$
DECLARE key bigint;
BEGIN
    FOR key IN
        SELECT DISTINCT hashtextextended(e.channel || ':' || e.external_id, 20240607)
        FROM unnest(p_channels, p_ids) AS e (channel, external_id) ORDER BY 1
    LOOP
        PERFORM pg_advisory_xact_lock(key);
    END LOOP;
END $$;

CREATE FUNCTION new_lead(p_now timestamptz) RETURNS bigint
LANGUAGE sql SET search_path = identity, pg_temp AS $$
    INSERT INTO lead (lead_id, root_id, created_at)
    SELECT n, n, p_now FROM nextval('lead_number') AS n
    RETURNING lead_id
$$;

-- The changes of some leads that not everybody has been told of, oldest first.
CREATE FUNCTION pending_of(p_leads bigint[]) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = identity, pg_temp AS $$
    SELECT coalesce(jsonb_agg(jsonb_build_object(
        'number', c.number, 'kind', c.kind, 'at', c.at, 'announcement', c.announcement) ORDER BY c.number), '[]')
    FROM identity_change AS c
    WHERE c.announced_at IS NULL AND c.leads && p_leads
$$;

-- What a caller is told of a leaf; null if the organization does not know that lead yet.
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

-- The lead that known identities agree on; null where a decision is needed.
-- is_known: none (0), some (1) or all (2) of them are.
CREATE FUNCTION agreed(
    p_channels text[], p_ids text[], p_strong int, OUT is_known int, OUT lead_id bigint
) LANGUAGE sql STABLE SET search_path = identity, pg_temp AS $$
    SELECT
        CASE count(c.lead_id) WHEN 0 THEN 0 WHEN count(*) THEN 2 ELSE 1 END,
        CASE
            WHEN count(c.lead_id) < count(*) THEN NULL
            WHEN p_strong = 0 THEN (array_agg(c.lead_id ORDER BY c.is_shared, e.place))[1]
            WHEN count(DISTINCT l.root_id) FILTER (WHERE NOT c.is_shared) = 1
            THEN (array_agg(c.lead_id ORDER BY e.place))[1]
        END
    FROM unnest(p_channels, p_ids) WITH ORDINALITY AS e (channel, external_id, place)
    LEFT JOIN channel_identity AS c USING (channel, external_id)
    LEFT JOIN lead AS l USING (lead_id)
$$;

-- Identities by precedence, the first p_strong of them strong, and all such that one lead may have them.
-- Returns null where a decision is needed.
CREATE FUNCTION resolve(
    p_organization text, p_channels text[], p_ids text[], p_strong int, p_now timestamptz
) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = identity, pg_temp AS $$
DECLARE
    v_known int;
    v_lead bigint;
    v_result jsonb;
BEGIN
    SELECT a.is_known, a.lead_id INTO v_known, v_lead FROM agreed(p_channels, p_ids, p_strong) AS a;
    IF v_known = 0 THEN
        PERFORM lock_identities(p_channels, p_ids);
        SELECT a.is_known, a.lead_id INTO v_known, v_lead FROM agreed(p_channels, p_ids, p_strong) AS a;
    END IF;
    IF v_known = 0 THEN
        v_lead := new_lead(p_now);
        INSERT INTO channel_identity (channel, external_id, lead_id, created_at)
        SELECT e.channel, e.external_id, v_lead, p_now FROM unnest(p_channels, p_ids) AS e (channel, external_id);
    ELSIF v_lead IS NULL THEN
        RETURN NULL;
    ELSE
        v_result := resolution(p_organization, v_lead);
        IF v_result IS NOT NULL THEN
            RETURN v_result;
        END IF;
        -- New to this organization. A lead in a group becomes a leaf that others must be told of.
        PERFORM FROM lead AS l WHERE l.lead_id = v_lead FOR NO KEY UPDATE;
        IF (SELECT count(*) FROM lead AS l JOIN lead AS this USING (root_id) WHERE this.lead_id = v_lead) > 1 THEN
            RETURN NULL;
        END IF;
    END IF;
    INSERT INTO lead_organization (lead_id, organization_id, created_at) VALUES (v_lead, p_organization, p_now)
    ON CONFLICT (lead_id, organization_id) DO NOTHING;
    RETURN resolution(p_organization, v_lead);
END $$;
