"""The Data API: round trips, answers that are lost, errors of the service, long answers, no driver."""

import logging
import os
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.leads.identity_store import AlreadyUndone, IdentityStore
from adapters.platform.aws import _session, client
from adapters.postgresql.rds_data import WAKING, WAKING_PAUSES_SECONDS, LostConnection, RdsData
from adapters.postgresql.sql import PostgresUnavailable
from local.cloud.processes import free_port
from local.paths import ROOT
from rules.leads.identity import Identity
from tests.support.identity_server import NOW, Registry
from tests.support.tls_postgres import make_authority

pytestmark = [
    pytest.mark.xdist_group("identity"),
    pytest.mark.parametrize("registry", ["data_api"], indirect=True),
]
A, B, C = (Identity("email", f"{name}@x") for name in "abc")
BEGIN, EXECUTE, COMMIT, ROLLBACK = (
    "BeginTransaction",
    "ExecuteStatement",
    "CommitTransaction",
    "RollbackTransaction",
)


def calls(registry: Registry, *identities: Identity, organization: str = "acme") -> list[str]:
    before = len(registry.counting.api.calls)
    registry.see(*identities, organization=organization)
    return list(registry.counting.api.calls[before:])


def test_round_trips(registry: Registry) -> None:
    assert calls(registry, A) == [EXECUTE, EXECUTE]  # new: what is known, and what is planned
    assert calls(registry, A) == [EXECUTE]  # all known
    assert calls(registry, A, organization="other") == [EXECUTE, EXECUTE]
    registry.see(B)
    assert calls(registry, A, B) == [EXECUTE, EXECUTE]  # a merge
    for kind in ("pending", "history"):
        before = len(registry.counting.api.calls)
        registry.store.pending() if kind == "pending" else registry.store.history(["acme"], "x", None, 9)
        assert registry.counting.api.calls[before:] == [EXECUTE]


@pytest.mark.parametrize("operation", [BEGIN, EXECUTE, COMMIT])
def test_a_transaction_whose_answer_is_lost_is_made_again(registry: Registry, operation: str) -> None:
    attempts: list[int] = []

    def work(connection: Any) -> Any:
        with connection.transaction():
            attempts.append(len(attempts))
            return connection.execute("SELECT 1").fetchone()

    registry.counting.api.lost.append(operation)
    assert RdsData(registry.url).run(work) == (1,)
    assert len(attempts) == (1 if operation == BEGIN else 2)


def test_a_decision_whose_answer_is_lost_is_made_once(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statement that applies it has done so: the next attempt tells of the same change."""
    registry.see(A)
    registry.see(B)
    real = IdentityStore._call

    def call(*arguments: Any) -> Any:
        answer = real(*arguments)
        if arguments[1].startswith("facts"):
            registry.counting.api.lost.append(EXECUTE)
        return answer

    monkeypatch.setattr(IdentityStore, "_call", call)
    (change,) = registry.see(A, B).changes
    assert registry.rows("SELECT number FROM identity.identity_change") == [(change.number,)]
    assert len(registry.groups()) == 1


def test_a_rollback_that_is_lost_hides_no_reason(registry: Registry) -> None:
    registry.see(A)
    connection = RdsData(registry.url)
    registry.counting.api.lost.append(ROLLBACK)

    def work(each: Any) -> None:
        with each.transaction():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        connection.run(work)


def test_an_undoing_whose_answer_is_lost_is_not_repeated(registry: Registry) -> None:
    registry.see(A)
    registry.see(B)
    number = registry.see(A, B).changes[0].number
    registry.counting.api.lost.append(EXECUTE)
    with pytest.raises(PostgresUnavailable):
        registry.store.unmerge(None, number, "why", "me", NOW)
    with pytest.raises(AlreadyUndone, match=f"^change {number} has been undone by change {number + 1}$"):
        registry.store.unmerge(None, number, "why", "me", NOW)


def test_a_transaction_that_the_service_has_ended_is_begun_again(registry: Registry) -> None:
    registry.see(A)
    registry.see(B)
    found = iter([False, True])

    def work(connection: Any) -> Any:
        with connection.transaction():
            if not next(found):
                ended = ("TransactionNotFoundException", "Transaction x is not found")
                registry.counting.api.refusals.append(ended)
            return connection.execute("SELECT 1").fetchone()

    assert RdsData(registry.url).run(work) == (1,)


def test_nobody_there_is_unavailable(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_RDS_DATA", f"http://127.0.0.1:{free_port()}")
    client.cache_clear()
    with pytest.raises(PostgresUnavailable, match="EndpointConnectionError"):
        registry.see(A)
    client.cache_clear()


# The server ends the connection after its bytes: the client may see the end first.
BROKEN_TLS = "SSLError|ConnectionClosedError"


@pytest.mark.parametrize("speaks_tls", [True, False])
def test_a_tls_connection_that_breaks_is_a_lost_one(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, speaks_tls: bool
) -> None:
    """What comes back is no TLS: after the call, or at once."""
    authority, certificate = make_authority(tmp_path, "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    calls: list[bytes] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                plain, _ = listener.accept()
                with context.wrap_socket(plain, server_side=True) if speaks_tls else plain as connection:
                    calls.append(connection.recv(65536))
                    os.write(connection.fileno(), b"no TLS " * 9)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL_RDS_DATA", f"https://localhost:{listener.getsockname()[1]}")
        monkeypatch.setenv("AWS_CA_BUNDLE", str(authority))
        client.cache_clear()
        _session.cache_clear()
        with pytest.raises(LostConnection, match=BROKEN_TLS):
            registry.see(A)
        assert len(calls) == 2, "it was called once more"
        calls.clear()
        with pytest.raises(LostConnection, match=BROKEN_TLS):
            registry.store.unmerge(None, 1, "why", "me", NOW)
        assert len(calls) == 1, "what is not safe to repeat at once was not"
    client.cache_clear()
    _session.cache_clear()


def test_answers_longer_than_a_row_may_be_arrive(registry: Registry) -> None:
    registry.see(A)
    leaves = [f"\u20ac{number:040}" for number in range(3000)]
    registry.rows(
        "INSERT INTO identity.identity_change (organization_id, kind, leads, evidence, announcement, at)"
        " SELECT 'acme', 'merged', '{1}', '{}', jsonb_build_object('acme', jsonb_build_array("
        " jsonb_build_object('root', 'r', 'leaves', %s::text[]))), now() RETURNING number",
        leaves,
    )
    (change,) = registry.store.pending()
    assert list(change.groups[0].leaves) == leaves
    registry.store.note_announced([change])


def test_the_function_needs_no_driver(registry: Registry) -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from datetime import datetime, UTC\n"
        "from adapters.leads.identity_store import IdentityStore, CannotRepair\n"
        "from adapters.postgresql.postgres import database\n"
        "from rules.leads.identity import Identity\n"
        "import ingest.leads.lead_consumer, ingest.leads.identity_migration\n"
        "store = IdentityStore(database(sys.argv[1]))\n"
        "now = datetime(2026, 3, 10, tzinfo=UTC)\n"
        "see = lambda *e: store.resolve('acme', [Identity('email', x) for x in e], {'source': 's', 'external_event_id': 'x'}, now)\n"
        "see('a@x'), see('b@x')\n"
        "(change,) = see('a@x', 'b@x').changes\n"
        "store.unmerge(None, change.number, 'why', 'me', now)\n"
        "try: store.unmerge(None, change.number, 'why', 'me', now)\n"
        "except CannotRepair: print('fine')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, registry.url],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "fine\n", done.stderr


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What was waited, in seconds, without waiting. Time goes on by it."""
    waited: list[float] = []
    clock = SimpleNamespace(sleep=waited.append, monotonic=lambda: 1000 + sum(waited))
    # The module's name for `time`, and not time.sleep itself: others in this process wait too.
    monkeypatch.setattr("adapters.platform.aws.time", clock)
    monkeypatch.setattr("adapters.postgresql.rds_data.time", clock)
    return waited


def test_a_database_that_wakes_up_is_waited_for_and_told_of_once(
    registry: Registry, slept: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    registry.counting.api.sleep(4)
    assert registry.see(A).lead_id == 1
    assert slept == list(WAKING_PAUSES_SECONDS[:4])
    told = [each.message for each in caplog.records if each.levelno == logging.WARNING]
    assert told == [WAKING]
    assert WAKING.startswith("the identity database is waking up: nothing is lost")


def test_a_database_that_does_not_wake_up_is_waited_for_a_minute(
    registry: Registry, slept: list[float]
) -> None:
    registry.counting.api.sleep(len(WAKING_PAUSES_SECONDS) + 1)
    with pytest.raises(PostgresUnavailable, match="is resuming"):
        registry.see(A)
    assert sum(slept) == 60
    assert registry.see(A).lead_id == 1  # awake by now


def test_throttled_calls_are_made_again_and_work_is_not(registry: Registry, slept: list[float]) -> None:
    registry.see(A)
    registry.see(B)
    number = registry.see(A, B).changes[0].number
    registry.counting.api.refusals += [("ThrottlingException", "Rate exceeded")] * 3
    registry.store.unmerge(None, number, "why", "me", NOW)
    assert len(slept) == 3
    registry.counting.api.refusals += [("ThrottlingException", "Rate exceeded")] * 6
    with pytest.raises(PostgresUnavailable, match="ThrottlingException: Rate exceeded"):
        registry.see(C)
