"""PostgreSQL goes away, is slow, or refuses: the caller learns whether trying again makes sense."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from adapters.leads.identity_store import CannotRepair, IdentityStore
from adapters.postgresql.postgres import Postgres
from adapters.postgresql.sql import PostgresRefused, PostgresUnavailable
from local.cloud.processes import free_port
from rules.leads.identity import Identity
from tests.support.identity_server import NOW, TABLES, WAYS, Registry

pytestmark = pytest.mark.xdist_group("identity")

both_ways = pytest.mark.parametrize("registry", WAYS, indirect=True)
A, B = Identity("email", "a@x"), Identity("email", "b@x")


def kill_sessions(registry: Registry) -> None:
    """As RDS Proxy closes a connection that nobody used for a while."""
    registry.rows(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE starts_with(usename, 'streakline_leads')"
    )


@both_ways
def test_a_session_that_was_closed_is_not_noticed(registry: Registry) -> None:
    first = registry.see(A)
    kill_sessions(registry)
    assert registry.see(A) == first
    registry.see(B)
    kill_sessions(registry)
    assert len(registry.see(A, B).changes) == 1


@both_ways
def test_what_cannot_safely_be_repeated_is_left_to_the_caller(registry: Registry) -> None:
    registry.see(A)
    registry.see(B)
    number = registry.see(A, B).changes[0].number
    kill_sessions(registry)
    with pytest.raises(PostgresUnavailable):
        registry.store.unmerge(None, number, "why", "me", NOW)
    registry.store.unmerge(None, number, "why", "me", NOW)
    with pytest.raises(CannotRepair):
        registry.store.unmerge(None, number, "why", "me", NOW)


def test_nobody_there_is_unavailable() -> None:
    store = IdentityStore(Postgres(f"postgresql://me:secret@127.0.0.1:{free_port()}/none"))
    with pytest.raises(PostgresUnavailable, match="OperationalError"):
        store.pending()


@contextlib.contextmanager
def limit(registry: Registry, name: str, value: str) -> Iterator[None]:
    """Give the application's role another limit in new sessions."""
    role = f"ALTER ROLE {registry.role} IN DATABASE {registry.database}"
    registry.owner.execute(f"{role} SET {name} = '{value}'")
    try:
        yield
    finally:
        registry.owner.execute(f"{role} RESET {name}")
        kill_sessions(registry)


@both_ways
@pytest.mark.parametrize(
    ("name", "reason"),
    [("lock_timeout", "due to lock timeout"), ("statement_timeout", "due to statement timeout")],
)
def test_what_waits_too_long_is_unavailable(registry: Registry, name: str, reason: str) -> None:
    kill_sessions(registry)
    with limit(registry, name, "50ms"), registry.owner.transaction():
        registry.owner.execute("LOCK TABLE identity.lead IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(PostgresUnavailable, match=reason):
            registry.see(A)
    # Not while the limit holds: a loaded machine takes 50 ms for less.
    assert registry.see(A).changes == ()


@both_ways
def test_the_application_may_call_functions_and_nothing_else(registry: Registry) -> None:
    registry.see(A)
    application = registry.connect()

    def ask(statement: str) -> Any:
        return application.run(lambda each: each.execute(statement).fetchone())

    for name, value in (("statement_timeout", "3s"), ("lock_timeout", "2s")):
        assert ask(f"SHOW {name}") == (value,)
    forbidden = [f"SELECT count(*) FROM identity.{table}" for table in (*TABLES, "migration")]
    forbidden += [
        "SELECT identity.new_lead('acme', now())",
        "CREATE TABLE identity.t (x int)",
        "CREATE TABLE public.t (x int)",
    ]
    for statement in forbidden:
        with pytest.raises(PostgresRefused, match="permission denied") as refused:
            ask(statement)
        assert refused.value.sqlstate == "42501"
    application.close()


KNOWN = (
    "INSERT INTO identity.channel_identity"
    " (organization_id, channel, external_id, lead_id, is_verified, created_at)"
)
LEAD = "INSERT INTO identity.lead (lead_id, root_id, organization_id, created_at)"


@pytest.mark.parametrize(
    "statement",
    [
        f"{KNOWN} SELECT organization_id, channel, external_id, 2, true, now() FROM identity.channel_identity",
        "INSERT INTO identity.lead_organization (lead_id, organization_id, created_at) VALUES (1, 'acme', now())",
        f"{KNOWN} VALUES ('acme', 'email', 'c@x', 99, true, now())",
        "UPDATE identity.lead SET root_id = 2 WHERE lead_id = 1",  # the root is the oldest
        f"{LEAD} VALUES (3, 2, 'acme', now()); UPDATE identity.lead SET root_id = 1 WHERE lead_id = 2",
        "DELETE FROM identity.lead WHERE lead_id = 1",
    ],
)
def test_the_schema_itself_refuses_duplicates_and_chains(registry: Registry, statement: str) -> None:
    registry.see(A)
    registry.see(B)
    with pytest.raises(psycopg.IntegrityError), registry.owner.transaction():
        registry.owner.execute(statement)


def test_psycopg_is_paid_for_by_those_who_connect() -> None:
    code = (
        "import sys, ingest.leads.lead_consumer, ingest.leads.identity_migration;"
        "sys.exit('psycopg' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
