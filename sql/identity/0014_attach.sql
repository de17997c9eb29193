-- What is new beside a known person, or beside a known thing, is attached in the statement that asks: no decision is
-- needed for it. Example: a known e-mail address with a new cookie.

-- The one lead that an event's strong identities have, and its root; null unless all of them are known, unshared and
-- of one group, and verified where the event proves them. has_others: whether its things are of other groups, too.
CREATE FUNCTION sole_lead(
    p_organization text, p_channels text[], p_ids text[], p_strong int, p_verified boolean,
    OUT lead_id bigint, OUT root_id bigint, OUT is_proven boolean, OUT has_others boolean
) LANGUAGE sql STABLE SET search_path = identity, pg_temp AS $$
    SELECT
        CASE
            WHEN count(c.lead_id) FILTER (WHERE e.place <= p_strong) = p_strong
                AND NOT bool_or(c.is_shared) FILTER (WHERE e.place <= p_strong)
                AND (bool_and(c.is_verified) FILTER (WHERE e.place <= p_strong) OR NOT p_verified)
                AND count(DISTINCT l.root_id) FILTER (WHERE e.place <= p_strong) = 1
            THEN (array_agg(c.lead_id ORDER BY e.place))[1]
        END,
        min(l.root_id) FILTER (WHERE e.place <= p_strong),
        bool_or(c.is_verified) FILTER (WHERE e.place <= p_strong),
        count(DISTINCT l.root_id) FILTER (WHERE NOT c.is_shared) > 1
    FROM unnest(p_channels, p_ids) WITH ORDINALITY AS e (channel, external_id, place)
    LEFT JOIN channel_identity AS c
        ON c.organization_id = p_organization AND c.channel = e.channel AND c.external_id = e.external_id
    LEFT JOIN lead AS l USING (lead_id)
$$;

-- Adds what is unknown to a lead.
CREATE FUNCTION attach(
    p_organization text, p_channels text[], p_ids text[], p_verified int, p_lead bigint, p_now timestamptz
) RETURNS void LANGUAGE sql SET search_path = identity, pg_temp AS $$
    INSERT INTO channel_identity (organization_id, channel, external_id, lead_id, is_verified, created_at)
    SELECT p_organization, e.channel, e.external_id, p_lead, e.place <= p_verified, p_now
    FROM unnest(p_channels, p_ids) WITH ORDINALITY AS e (channel, external_id, place)
    WHERE NOT EXISTS (
        SELECT FROM channel_identity AS c
        WHERE c.organization_id = p_organization AND c.channel = e.channel AND c.external_id = e.external_id)
$$;

-- The lead of an event of which some identities are known, with the others attached to it; null where a decision is
-- needed. The identities are locked. The group is locked after them, as for every decision; if it changed meanwhile,
-- that is for a decision, too. Who is proven gets nothing by a claim.
CREATE FUNCTION attached(
    p_organization text, p_channels text[], p_ids text[], p_strong int, p_verified boolean, p_now timestamptz
) RETURNS bigint LANGUAGE plpgsql SET search_path = identity, pg_temp AS $$
DECLARE
    v_lead bigint;
    v_root bigint;
    v_sole record;
BEGIN
    IF p_strong = 0 THEN
        SELECT c.lead_id INTO v_lead
        FROM unnest(p_channels, p_ids) WITH ORDINALITY AS e (channel, external_id, place)
        JOIN channel_identity AS c USING (channel, external_id)
        WHERE c.organization_id = p_organization AND NOT c.is_shared ORDER BY e.place LIMIT 1;
        IF v_lead IS NULL THEN
            v_lead := new_lead(p_organization, p_now);
        END IF;
        PERFORM attach(p_organization, p_channels, p_ids, 0, v_lead, p_now);
        RETURN v_lead;
    END IF;
    SELECT s.root_id INTO v_root
    FROM sole_lead(p_organization, p_channels, p_ids, p_strong, p_verified) AS s WHERE s.lead_id IS NOT NULL;
    IF v_root IS NULL THEN
        RETURN NULL;
    END IF;
    PERFORM FROM lead AS l WHERE l.lead_id = v_root FOR NO KEY UPDATE;
    SELECT * INTO v_sole FROM sole_lead(p_organization, p_channels, p_ids, p_strong, p_verified);
    IF v_sole.lead_id IS NULL OR v_sole.root_id <> v_root THEN
        RETURN NULL;
    END IF;
    IF NOT p_verified AND (v_sole.is_proven OR EXISTS (
        SELECT FROM lead AS l JOIN channel_identity AS c USING (lead_id)
        WHERE l.root_id = v_root AND c.is_verified AND NOT c.is_shared)) THEN
        RETURN v_sole.lead_id;
    END IF;
    IF v_sole.has_others THEN
        RETURN NULL;
    END IF;
    PERFORM attach(p_organization, p_channels, p_ids, 0, v_sole.lead_id, p_now);
    RETURN v_sole.lead_id;
END $$;

-- As before, and attaches what is new.
CREATE OR REPLACE FUNCTION resolve(
    p_organization text, p_channels text[], p_ids text[], p_strong int, p_verified boolean, p_now timestamptz
) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = identity, pg_temp AS $$
DECLARE
    v_known int;
    v_lead bigint;
BEGIN
    SELECT a.is_known, a.lead_id INTO v_known, v_lead
    FROM agreed(p_organization, p_channels, p_ids, p_strong, p_verified) AS a;
    IF v_known < 2 THEN
        PERFORM lock_identities(p_organization, p_channels, p_ids);
        SELECT a.is_known, a.lead_id INTO v_known, v_lead
        FROM agreed(p_organization, p_channels, p_ids, p_strong, p_verified) AS a;
    END IF;
    IF v_known = 0 THEN
        v_lead := new_lead(p_organization, p_now);
        PERFORM attach(p_organization, p_channels, p_ids, CASE WHEN p_verified THEN p_strong ELSE 0 END, v_lead, p_now);
    ELSIF v_known = 1 THEN
        v_lead := attached(p_organization, p_channels, p_ids, p_strong, p_verified, p_now);
    END IF;
    IF v_lead IS NULL THEN
        RETURN NULL;
    END IF;
    INSERT INTO lead_organization (lead_id, organization_id, created_at)
    SELECT v_lead, p_organization, p_now
    WHERE NOT EXISTS (SELECT FROM lead_organization AS o WHERE o.lead_id = v_lead)
    ON CONFLICT (lead_id, organization_id) DO NOTHING;
    RETURN resolution(p_organization, v_lead);
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA identity FROM PUBLIC;
