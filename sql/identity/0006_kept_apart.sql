-- What an operator has parted stays parted: no event joins a lead of one side with a lead of the other.

ALTER TABLE identity_change ADD UNIQUE (number, kind);

-- number: the undoing. is_moved: on which of its two sides a lead is kept; all leads of both groups as they
-- stood after it. Two leads are kept apart where they are on different sides of one undoing.
CREATE TABLE kept_apart (
    number bigint NOT NULL,
    lead_id bigint NOT NULL REFERENCES lead,
    is_moved boolean NOT NULL,
    kind text NOT NULL GENERATED ALWAYS AS ('unmerged') STORED,
    PRIMARY KEY (number, lead_id),
    FOREIGN KEY (number, kind) REFERENCES identity_change (number, kind)
);
CREATE INDEX kept_apart_by_lead ON kept_apart (lead_id);

-- The decision refuses such merges; should it ever plan one (as a version that knows nothing of this table
-- would), the schema refuses it.
CREATE FUNCTION refuse_kept_apart() RETURNS trigger
LANGUAGE plpgsql SET search_path = identity, pg_temp AS $$
DECLARE v_number bigint;
BEGIN
    SELECT mine.number INTO v_number
    FROM kept_apart AS mine JOIN kept_apart AS theirs USING (number) JOIN lead AS l ON l.lead_id = theirs.lead_id
    WHERE mine.lead_id = NEW.lead_id AND theirs.is_moved <> mine.is_moved AND l.root_id = NEW.root_id LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'lead % is kept apart from group % by change %', NEW.lead_id, NEW.root_id, v_number
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER lead_kept_apart AFTER UPDATE OF root_id ON lead FOR EACH ROW EXECUTE FUNCTION refuse_kept_apart();

-- Why groups were not merged is part of the evidence; each reason is noted once for the same groups.
UPDATE identity_change SET evidence = evidence || '{"reason": "too many"}' WHERE kind = 'refused';
DROP INDEX identity_change_refused;
CREATE UNIQUE INDEX identity_change_refused ON identity_change (leads, (evidence->>'reason')) WHERE kind = 'refused';

-- Pairs of some roots whose groups are kept apart.
CREATE FUNCTION apart(p_roots bigint[]) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = identity, pg_temp AS $$
    WITH side AS (
        SELECT DISTINCT k.number, k.is_moved, l.root_id FROM lead AS l JOIN kept_apart AS k USING (lead_id)
        WHERE l.root_id = ANY (p_roots)
    )
    SELECT coalesce(jsonb_agg(DISTINCT jsonb_build_array(one.root_id, other.root_id)), '[]')
    FROM side AS one JOIN side AS other USING (number) WHERE one.is_moved AND NOT other.is_moved
$$;

-- p_refusal: {"reason", "roots"}, where root 0 is p_home.
CREATE FUNCTION note_refusal(p_refusal jsonb, p_home bigint, p_evidence jsonb, p_now timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = identity, pg_temp AS $$
DECLARE
    v_reason text := p_refusal->>'reason';
    v_leads bigint[];
BEGIN
    v_leads := ARRAY(
        SELECT DISTINCT l.root_id FROM jsonb_array_elements_text(p_refusal->'roots') AS r
        JOIN lead AS l ON l.lead_id = coalesce(nullif(r::bigint, 0), p_home) ORDER BY l.root_id);
    IF NOT EXISTS (
        SELECT FROM identity_change AS c
        WHERE c.kind = 'refused' AND c.leads = v_leads AND c.evidence->>'reason' = v_reason) THEN
        PERFORM note_change(
            'refused', v_leads, '{}', p_evidence || jsonb_build_object('reason', v_reason), '{}', p_now);
    END IF;
END $$;

-- As before, and tells what is kept apart.
CREATE OR REPLACE FUNCTION facts(p_channels text[], p_ids text[], p_strong_channels text[]) RETURNS jsonb
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
            WHERE l.root_id = ANY (v_after) AND c.channel = ANY (p_strong_channels)),
        'apart', apart(v_after));
END $$;

-- As before, but for refusals, which have a reason.
CREATE OR REPLACE FUNCTION apply(p_organization text, p_plan jsonb, p_evidence jsonb, p_now timestamptz) RETURNS jsonb
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
    FOR v_each IN SELECT * FROM jsonb_array_elements(p_plan->'refused') LOOP
        PERFORM note_refusal(v_each, v_home, p_evidence, p_now);
    END LOOP;
    RETURN resolution(p_organization, v_home);
END $$;

-- As before, and keeps apart what it has parted.
CREATE OR REPLACE FUNCTION unmerge(p_number bigint, p_evidence jsonb, p_now timestamptz) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = identity, pg_temp AS $$
DECLARE
    v_change identity_change;
    v_root bigint;
    v_moved bigint[];
    v_back bigint[];
    v_group bigint[];
    v_later bigint;
    v_undoing bigint;
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
    v_undoing := move_leads('unmerged', v_moved, v_back, v_group, '{}', p_evidence, p_now);
    UPDATE identity_change SET reversed_by = v_undoing WHERE number = p_number;
    INSERT INTO kept_apart (number, lead_id, is_moved)
    SELECT v_undoing, g.lead_id, g.lead_id = ANY (v_moved) FROM unnest(v_group) AS g (lead_id);
    RETURN pending_of(v_group);
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA identity FROM PUBLIC;
