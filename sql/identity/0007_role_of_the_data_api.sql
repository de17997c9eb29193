-- The application's role for the RDS Data API, which signs in by a password. On AWS streakline_leads signs in
-- by IAM (rds_iam), and such a role may have no password. This one may call the same functions, no others. It
-- cannot sign in until somebody gives it a password: ingest/leads/identity_migration.py does.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'streakline_leads_api') THEN
        CREATE ROLE streakline_leads_api LOGIN;
    END IF;
END $$;
ALTER ROLE streakline_leads_api SET statement_timeout = '3s';
ALTER ROLE streakline_leads_api SET lock_timeout = '2s';
ALTER ROLE streakline_leads_api SET idle_in_transaction_session_timeout = '5s';

GRANT USAGE ON SCHEMA identity TO streakline_leads_api;
GRANT EXECUTE ON FUNCTION
    resolve(text, text[], text[], int, timestamptz),
    facts(text[], text[], text[]),
    apply(text, jsonb, jsonb, timestamptz),
    announced(bigint[]),
    pending(int),
    unmerge(bigint, jsonb, timestamptz),
    history(text)
TO streakline_leads_api;
