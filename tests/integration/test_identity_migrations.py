"""Migrations are applied once, in order, whoever runs them; a changed one is refused."""

import json
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from moto import mock_aws

from adapters.platform.aws import client
from adapters.platform.migrations import FOLDER, MigrationChanged, migrate
from ingest.leads import identity_migration as function
from local.paths import ROOT
from tests.support.identity_server import Server

pytestmark = pytest.mark.xdist_group("identity")

CONTEXT = SimpleNamespace(
    function_name="f", memory_limit_in_mb=128, invoked_function_arn="arn", aws_request_id="1"
)


@pytest.fixture
def empty(identity_server: Server) -> Iterator[str]:
    """The owner's URL of a database without a schema."""
    identity_server.made += 1
    name = f"empty{identity_server.made}"
    with psycopg.connect(identity_server.owner("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield identity_server.owner(name)


def run(url: str, folder: Path = FOLDER) -> list[str]:
    with psycopg.connect(url, autocommit=True) as connection:
        return migrate(connection, folder)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "sql"
    shutil.copytree(FOLDER, folder)
    return folder


def test_all_are_applied_once(empty: str) -> None:
    names = sorted(path.name for path in FOLDER.glob("*.sql"))
    assert run(empty) == names
    assert run(empty) == []


def test_concurrent_runners_apply_each_once(empty: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        applied = list(threads.map(run, [empty] * 4))
    assert sorted(map(len, applied)) == [0, 0, 0, len(list(FOLDER.glob("*.sql")))]


def test_a_changed_file_is_refused_before_anything_is_applied(empty: str, files: Path) -> None:
    run(empty, files)
    (files / "0002_resolve.sql").write_text("SELECT 1")
    (files / "0999_new.sql").write_text("CREATE TABLE never (x int)")
    with pytest.raises(MigrationChanged, match=r"0002_resolve\.sql was changed after it had been applied"):
        run(empty, files)
    with psycopg.connect(empty) as connection:
        assert connection.execute("SELECT to_regclass('identity.never')").fetchone() == (None,)


def test_a_file_that_fails_leaves_nothing_of_itself(empty: str, files: Path) -> None:
    (files / "0999_new.sql").write_text("CREATE TABLE half (x int); SELECT 1 / 0")
    with pytest.raises(psycopg.errors.DivisionByZero):
        run(empty, files)
    (files / "0999_new.sql").write_text("CREATE TABLE half (x int)")
    assert run(empty, files) == ["0999_new.sql"]


def test_an_older_version_runs_over_a_newer_schema(empty: str, files: Path) -> None:
    (files / "0999_new.sql").write_text("CREATE TABLE newer (x int)")
    run(empty, files)
    assert run(empty) == []


def test_no_files_are_a_packaging_error(empty: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no migrations"):
        run(empty, tmp_path)


class CloudFormation:
    """Hears what is put to the answer URL."""

    def __init__(self) -> None:
        self.answers: list[dict[str, Any]] = []
        self.types: list[str | None] = []
        heard = self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                heard.types.append(self.headers["Content-Type"])
                heard.answers.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/answer?signed"


@pytest.fixture
def stack(empty: str, identity_server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudFormation]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with mock_aws():
        client.cache_clear()
        secret = client("secretsmanager").create_secret(
            Name="owner",
            SecretString=json.dumps({"username": "postgres", "password": identity_server.passwords["owner"]}),
        )
        monkeypatch.setenv("ADMIN_SECRET_ARN", secret["ARN"])
        monkeypatch.setenv("IDENTITY_URL", empty.replace(f":{identity_server.passwords['owner']}@", "@"))
        # The laptop's server has no TLS: the rest of the way is the real one.
        monkeypatch.setattr("adapters.platform.postgres.SECURE", {})
        cloudformation = CloudFormation()
        yield cloudformation
        cloudformation.server.shutdown()
    client.cache_clear()


def ask(stack: CloudFormation, kind: str) -> dict[str, Any]:
    request = json.loads((ROOT / "tests/events/MigrateFunction.json").read_text())
    function.handler({**request, "RequestType": kind, "ResponseURL": stack.url}, CONTEXT)
    return stack.answers[-1]


def test_the_stack_is_told_what_was_applied(stack: CloudFormation) -> None:
    created = ask(stack, "Create")
    assert created["Status"] == "SUCCESS"
    assert created["Data"]["Applied"].startswith("0001_tables.sql, 0002")
    assert created["RequestId"] == "6f4a1c0e-1d2b-4c1b-8a43-0b1f9a2f6c11"
    updated = ask(stack, "Update")
    assert updated["PhysicalResourceId"] == created["PhysicalResourceId"]
    assert (updated["Status"], updated["Data"]) == ("SUCCESS", {"Applied": ""})
    assert set(stack.types) == {""}


def test_deleting_the_stack_deletes_no_leads(stack: CloudFormation, empty: str) -> None:
    ask(stack, "Create")
    assert ask(stack, "Delete")["Status"] == "SUCCESS"
    assert run(empty) == []


def test_the_stack_is_told_why_not(stack: CloudFormation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADMIN_SECRET_ARN", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:none")
    told = ask(stack, "Create")
    assert told["Status"] == "FAILED"
    assert "ResourceNotFoundException" in told["Reason"]


def test_deleting_works_where_nothing_else_does(
    stack: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IDENTITY_URL")
    assert ask(stack, "Create")["Reason"] == "RuntimeError: IDENTITY_URL is not set"
    assert ask(stack, "Delete")["Status"] == "SUCCESS"
