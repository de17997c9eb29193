-- The application's role: it may call these functions, which run as their owner, and see nothing else.
-- Timeouts hang on the role because RDS Proxy takes no startup options, and a SET would pin its sessions.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'streakline_leads') THEN
        CREATE ROLE streakline_leads LOGIN;
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'rds_iam') THEN
        GRANT rds_iam TO streakline_leads;
    END IF;
END $$;
ALTER ROLE streakline_leads SET statement_timeout = '3s';
ALTER ROLE streakline_leads SET lock_timeout = '2s';
ALTER ROLE streakline_leads SET idle_in_transaction_session_timeout = '5s';

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA identity FROM PUBLIC;
GRANT USAGE ON SCHEMA identity TO streakline_leads;
GRANT EXECUTE ON FUNCTION
    resolve(text, text[], text[], int, timestamptz),
    facts(text[], text[], text[]),
    apply(text, jsonb, jsonb, timestamptz),
    announced(bigint[]),
    pending(int),
    unmerge(bigint, jsonb, timestamptz),
    history(text)
TO streakline_leads;
