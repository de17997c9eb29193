-- Organizations are kept apart: from 0011 on each has leads and identities of its own. Before that, leads that
-- several organizations know are divided. That may take long, so 0010 does it in steps that are kept.

ALTER TABLE lead ADD COLUMN organization_id text;
CREATE INDEX lead_undivided ON lead (lead_id) WHERE organization_id IS NULL;

-- is_verified: a source has proven it; if not, somebody has claimed it. What was known so far counts as proven,
-- because people are recognised by it. typed_for: other leads that a claimed identity was typed for.
ALTER TABLE channel_identity ADD COLUMN organization_id text;
ALTER TABLE channel_identity ADD COLUMN is_verified boolean NOT NULL DEFAULT true;
ALTER TABLE channel_identity ADD COLUMN typed_for bigint[] NOT NULL DEFAULT '{}';

-- The lead of its own that an organization gets for one that another has. channel, external_id: the only
-- identity by which it can have come to know the lead; null if there were several.
CREATE TABLE divided_lead (
    lead_id bigint NOT NULL REFERENCES lead,
    organization_id text NOT NULL,
    own_lead_id bigint NOT NULL UNIQUE,
    channel text,
    external_id text,
    PRIMARY KEY (lead_id, organization_id)
);

-- Which organizations know some leads, the first one first. Ids of customers and things name their organization.
CREATE FUNCTION organizations_of(p_leads bigint[]) RETURNS TABLE (lead_id bigint, organization_id text, place bigint)
LANGUAGE sql STABLE SET search_path = identity, pg_temp AS $$
    SELECT k.lead_id, k.organization_id, row_number() OVER (
        PARTITION BY k.lead_id ORDER BY min(k.number), k.organization_id)
    FROM (
        SELECT o.lead_id, o.organization_id, o.number FROM lead_organization AS o WHERE o.lead_id = ANY (p_leads)
        UNION ALL
        SELECT c.lead_id, split_part(c.external_id, '/', 1), NULL FROM channel_identity AS c
        WHERE c.lead_id = ANY (p_leads) AND c.channel IN ('customer', 'device', 'cookie')
    ) AS k
    GROUP BY k.lead_id, k.organization_id
$$;

-- Which organization brought an identity of a lead: the one that its id names; else the one that came to know the
-- lead by the same event; else the one that knew the lead first.
CREATE FUNCTION brought_by(p_channel text, p_id text, p_lead bigint, p_at timestamptz) RETURNS text
LANGUAGE sql STABLE SET search_path = identity, pg_temp AS $$
    SELECT CASE
        WHEN p_channel IN ('customer', 'device', 'cookie') THEN split_part(p_id, '/', 1)
        ELSE coalesce(
            (SELECT min(o.organization_id) FROM lead_organization AS o WHERE o.lead_id = p_lead AND o.created_at = p_at),
            (SELECT l.organization_id FROM lead AS l WHERE l.lead_id = p_lead))
    END
$$;

-- Divides some leads; returns how many. Doing it again changes nothing.
CREATE FUNCTION divide(p_leads bigint[]) RETURNS int
LANGUAGE plpgsql SET search_path = identity, pg_temp AS $$
BEGIN
    -- Code of before may have met a divided lead again, while others were still being divided.
    DELETE FROM divided_lead AS d USING lead_organization AS again, lead_organization AS own
    WHERE again.lead_id = ANY (p_leads) AND d.lead_id = again.lead_id AND own.lead_id = d.own_lead_id
        AND d.organization_id = again.organization_id AND d.organization_id = own.organization_id;
    UPDATE lead AS l SET organization_id = coalesce(
        (SELECT k.organization_id FROM organizations_of(p_leads) AS k WHERE k.lead_id = l.lead_id AND k.place = 1), '?')
    WHERE l.lead_id = ANY (p_leads) AND l.organization_id IS NULL;
    INSERT INTO divided_lead (lead_id, organization_id, own_lead_id)
    SELECT k.lead_id, k.organization_id, nextval('lead_number')
    FROM organizations_of(p_leads) AS k JOIN lead AS l USING (lead_id) WHERE k.organization_id <> l.organization_id
    ON CONFLICT (lead_id, organization_id) DO NOTHING;
    INSERT INTO lead (lead_id, root_id, created_at, organization_id)
    SELECT d.own_lead_id, d.own_lead_id, coalesce(o.created_at, l.created_at), d.organization_id
    FROM divided_lead AS d JOIN lead AS l USING (lead_id)
    LEFT JOIN lead_organization AS o ON o.lead_id = d.lead_id AND o.organization_id = d.organization_id
    WHERE d.lead_id = ANY (p_leads) ON CONFLICT (lead_id) DO NOTHING;
    UPDATE divided_lead AS d SET channel = sole.channel, external_id = sole.external_id
    FROM (
        SELECT o.lead_id, o.organization_id, min(c.channel) AS channel, min(c.external_id) AS external_id
        FROM lead_organization AS o JOIN channel_identity AS c USING (lead_id)
        WHERE o.lead_id = ANY (p_leads) AND c.created_at <= o.created_at AND c.organization_id IS NULL
            AND (c.channel IN ('email', 'phone') OR split_part(c.external_id, '/', 1) = o.organization_id)
        GROUP BY o.lead_id, o.organization_id HAVING count(*) = 1
    ) AS sole
    WHERE d.lead_id = sole.lead_id AND d.organization_id = sole.organization_id AND sole.channel IN ('email', 'phone');
    UPDATE channel_identity AS c SET
        organization_id = b.organization_id,
        lead_id = coalesce(d.own_lead_id, c.lead_id),
        is_verified = c.channel IN ('customer', 'email', 'phone')
    FROM (
        SELECT e.channel, e.external_id, e.lead_id, brought_by(e.channel, e.external_id, e.lead_id, e.created_at) AS organization_id
        FROM channel_identity AS e WHERE e.lead_id = ANY (p_leads) AND e.organization_id IS NULL
    ) AS b LEFT JOIN divided_lead AS d USING (lead_id, organization_id)
    WHERE c.channel = b.channel AND c.external_id = b.external_id;
    UPDATE lead_organization AS o SET lead_id = d.own_lead_id FROM divided_lead AS d
    WHERE o.lead_id = ANY (p_leads) AND d.lead_id = o.lead_id AND d.organization_id = o.organization_id;
    RETURN cardinality(p_leads);
END $$;

-- Divides the next leads; returns how many there were.
CREATE FUNCTION divide_next(p_count int) RETURNS int
LANGUAGE plpgsql SET search_path = identity, pg_temp AS $$
BEGIN
    RETURN divide(ARRAY(
        SELECT l.lead_id FROM lead AS l WHERE l.organization_id IS NULL ORDER BY l.lead_id LIMIT p_count FOR UPDATE));
END $$;
