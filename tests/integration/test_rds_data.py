"""The Data API: a database that sleeps, calls that are throttled, answers that are lost; round trips."""

import logging
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from adapters.leads.identity_store import CannotUnmerge, IdentityUnavailable
from adapters.platform.aws import client
from adapters.platform.databases import database
from adapters.platform.rds_data import WAKING, WAKING_PAUSES_SECONDS, RdsData
from local.cloud.processes import free_port
from local.paths import ROOT
from rules.leads.identity.identities import Identity
from tests.support.identity_server import NOW, Registry
from tests.support.rds_data_api import APP_SECRET, CLUSTER, RdsDataApi

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


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What was waited, in seconds, without waiting. Time goes on by it."""
    waited: list[float] = []
    monkeypatch.setattr("adapters.platform.aws.time.sleep", waited.append)
    clock = SimpleNamespace(sleep=waited.append, monotonic=lambda: 1000 + sum(waited))
    monkeypatch.setattr("adapters.platform.rds_data.time", clock)
    return waited


def calls(registry: Registry, *identities: Identity, organization: str = "acme") -> list[str]:
    before = len(registry.counting.api.calls)
    registry.see(*identities, organization=organization)
    return list(registry.counting.api.calls[before:])


def test_round_trips(registry: Registry) -> None:
    assert calls(registry, A) == [EXECUTE]  # all new
    assert calls(registry, A) == [EXECUTE]  # all known
    assert calls(registry, A, organization="other") == [EXECUTE]
    registry.see(B)
    assert calls(registry, A, B) == [EXECUTE, BEGIN, EXECUTE, EXECUTE, COMMIT]
    for kind in ("pending", "history"):
        before = len(registry.counting.api.calls)
        registry.store.pending() if kind == "pending" else registry.store.history("x")
        assert registry.counting.api.calls[before:] == [EXECUTE]


def test_a_database_that_wakes_up_is_waited_for_and_told_of_once(
    registry: Registry, slept: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    registry.counting.api.sleep(4)
    assert registry.see(A).lead_id == 1
    assert slept == list(WAKING_PAUSES_SECONDS[:4])
    told = [each.message for each in caplog.records if each.levelno == logging.WARNING]
    assert told == [WAKING]
    assert WAKING.startswith("the identity database is waking up: nothing is lost")


def test_a_database_that_does_not_wake_up_keeps_nobody_waiting_for_long(
    registry: Registry, slept: list[float]
) -> None:
    registry.counting.api.sleep(len(WAKING_PAUSES_SECONDS) + 1)
    with pytest.raises(IdentityUnavailable, match="has not woken up yet"):
        registry.see(A)
    assert sum(slept) == 60
    registry.counting.api.sleep(1)
    with pytest.raises(IdentityUnavailable, match="has not woken up yet"):
        registry.see(A)  # the next message of the batch
    assert sum(slept) == 60
    assert registry.see(A).lead_id == 1  # awake by now
    slept.append(60)  # much later it sleeps again
    registry.counting.api.sleep(2)
    registry.see(A)
    assert sum(slept) == 120 + sum(WAKING_PAUSES_SECONDS[:2])


def test_throttled_calls_are_made_again_and_work_is_not(registry: Registry, slept: list[float]) -> None:
    registry.see(A)
    registry.see(B)
    number = registry.see(A, B).changes[0].number
    registry.counting.api.refusals += [("ThrottlingException", "Rate exceeded")] * 3
    registry.store.unmerge(number, "why", "me", NOW)
    assert len(slept) == 3
    registry.counting.api.refusals += [("ThrottlingException", "Rate exceeded")] * 6
    with pytest.raises(IdentityUnavailable, match="ThrottlingException: Rate exceeded"):
        registry.see(C)


@pytest.mark.parametrize("operation", [BEGIN, EXECUTE, COMMIT])
def test_a_lost_answer_changes_nothing(registry: Registry, operation: str) -> None:
    """Of the commit it is the dangerous one: the merge has been made."""
    registry.see(A)
    registry.see(B)
    registry.counting.api.lost.append(operation)
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
    with pytest.raises(IdentityUnavailable):
        registry.store.unmerge(number, "why", "me", NOW)
    with pytest.raises(CannotUnmerge, match=f"^change {number} has been undone by change {number + 1}$"):
        registry.store.unmerge(number, "why", "me", NOW)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("DatabaseUnavailableException", "The writer instance isn't available"),
        ("ServiceUnavailableError", "later"),
        ("InternalServerErrorException", "later"),
        ("StatementTimeoutException", "Request timed out"),
        ("DatabaseErrorException", "Database is not reachable"),
        ("DatabaseErrorException", "FATAL: remaining connection slots are reserved; SQLState: 53300"),
    ],
)
def test_what_may_pass_is_unavailable(registry: Registry, code: str, text: str) -> None:
    registry.counting.api.refusals.append((code, text))
    with pytest.raises(IdentityUnavailable, match=f"{code}: {text}"):
        registry.see(A)
    assert registry.see(A).lead_id == 1


@pytest.mark.parametrize(
    "code", ["AccessDeniedException", "BadRequestException", "HttpEndpointNotEnabledException"]
)
def test_what_an_operator_must_mend_is_shown_as_it_is(registry: Registry, code: str) -> None:
    registry.counting.api.refusals.append((code, "no"))
    with pytest.raises(ClientError, match=code):
        registry.see(A)


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
    with pytest.raises(IdentityUnavailable, match="EndpointConnectionError"):
        registry.see(A)
    client.cache_clear()


def test_answers_longer_than_a_row_may_be_arrive(registry: Registry) -> None:
    registry.see(A)
    leaves = [f"\u20ac{number:040}" for number in range(3000)]
    registry.rows(
        "INSERT INTO identity.identity_change (kind, leads, evidence, announcement, at)"
        " SELECT 'merged', '{1}', '{}', jsonb_build_object('acme', jsonb_build_array("
        " jsonb_build_object('root', 'r', 'leaves', %s::text[]))), now() RETURNING number",
        leaves,
    )
    (change,) = registry.store.pending()
    assert list(change.groups["acme"][0].leaves) == leaves
    registry.store.note_announced([change.number])


def test_the_function_needs_no_driver(registry: Registry) -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from datetime import datetime, UTC\n"
        "from adapters.leads.identity_store import IdentityStore, LeadEventKey, CannotUnmerge\n"
        "from adapters.platform.databases import database\n"
        "from rules.leads.identity.identities import Identity\n"
        "import ingest.leads.lead_consumer, ingest.leads.identity_migration\n"
        "store = IdentityStore(database(sys.argv[1]))\n"
        "now = datetime(2026, 3, 10, tzinfo=UTC)\n"
        "see = lambda *e: store.resolve('acme', [Identity('email', x) for x in e], LeadEventKey('s', 'x'), now)\n"
        "see('a@x'), see('b@x')\n"
        "(change,) = see('a@x', 'b@x').changes\n"
        "store.unmerge(change.number, 'why', 'me', now)\n"
        "try: store.unmerge(change.number, 'why', 'me', now)\n"
        "except CannotUnmerge: print('fine')\n"
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


@pytest.mark.parametrize(
    "request_",
    [
        {"sql": "SELECT 1; SELECT 2"},
        {"sql": "SELECT identity.unmerge(1, :p0, now())", "parameters": [{"name": "p0", "value": {"stringValue": "{}"}}]},
        {"sql": "SELECT identity.resolve('a', '{}', '{}', 1, :p0)", "parameters": [{"name": "p0", "value": {"stringValue": "2026-03-10"}}]},
        {"sql": "SELECT ':p0'"},
        {"sql": "SELECT :p0::text", "parameters": [{"name": "p1", "value": {"stringValue": "a"}}]},
        {"sql": "SELECT :p0::text[]", "parameters": [{"name": "p0", "value": {"arrayValue": {"stringValues": ["a"]}}}]},
        {"sql": "SELECT identity.announced('{1}')"},
        {"sql": "SET statement_timeout = 0"},
        {"sql": "SELECT repeat('a', 70000)"},
        {"sql": "SELECT 1", "transactionId": "none"},
        {"sql": 1},
    ],
)  # fmt: skip
def test_the_stand_in_refuses_what_aurora_would(
    registry: Registry, data_api: RdsDataApi, request_: dict[str, Any]
) -> None:
    api = client("rds-data", 1)
    names = {"resourceArn": CLUSTER, "secretArn": APP_SECRET, "database": registry.database}
    with pytest.raises(ClientError):
        api.execute_statement(**names, **request_)
    assert database(registry.url).run(lambda each: each.execute("SELECT 1").fetchone()) == (1,)
