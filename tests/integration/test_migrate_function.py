"""The custom resource tells CloudFormation what it applied, and gives the Data API's role its password."""

import base64
import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from moto import mock_aws

from adapters import settings
from adapters.platform.aws import client
from adapters.postgresql import postgres
from ingest.leads import identity_migration as function
from ingest.leads.identity_migration import ROLE, scram_verifier
from local.paths import ROOT
from tests.support.effort import effort
from tests.support.identity_server import WAYS, Server
from tests.support.rds_data_api import OWNER_SECRET, RdsDataApi

pytestmark = pytest.mark.xdist_group("identity")

CONTEXT = SimpleNamespace(
    function_name="f", memory_limit_in_mb=128, invoked_function_arn="arn", aws_request_id="1"
)


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


@pytest.fixture(params=WAYS[: effort(1, soak=2)])  # tests/integration/test_identity_migrations.py has both
def stack(
    request: pytest.FixtureRequest, empty: str, identity_server: Server, monkeypatch: pytest.MonkeyPatch
) -> Iterator[CloudFormation]:
    by_api: RdsDataApi | None = None
    if request.param == "data_api":
        by_api = request.getfixturevalue("data_api")
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
        monkeypatch.setenv("APP_SECRET_ARN", make_secret("app", ROLE, "first"))
        bare = empty.replace(f":{identity_server.passwords['owner']}@", "@")
        if by_api:
            bare = by_api.url(empty.rpartition("/")[2], OWNER_SECRET)
        monkeypatch.setenv("IDENTITY_URL", bare)
        # The laptop's server has no TLS: the rest of the way is the real one.
        real = postgres.connection_arguments
        monkeypatch.setattr("adapters.postgresql.postgres.ca_bundle", str)
        monkeypatch.setattr(
            "adapters.postgresql.postgres.connection_arguments",
            lambda *each: real(*each) | {"sslmode": "disable"},
        )
        cloudformation = CloudFormation()
        yield cloudformation
        cloudformation.server.shutdown()
    client.cache_clear()


def ask(stack: CloudFormation, kind: str) -> dict[str, Any]:
    request = json.loads((ROOT / "tests/events/MigrateFunction.json").read_text())
    function._parts.cache_clear()  # a deployment's settings come to a new process
    function.handler({**request, "RequestType": kind, "ResponseURL": stack.url}, CONTEXT)
    return stack.answers[-1]


def test_the_stack_is_told_what_was_applied(stack: CloudFormation) -> None:
    created = ask(stack, "Create")
    assert created["Status"] == "SUCCESS"
    assert created["Data"] == {"Applied": "0001_identity.sql"}
    assert created["RequestId"] == "6f4a1c0e-1d2b-4c1b-8a43-0b1f9a2f6c11"
    updated = ask(stack, "Update")
    assert updated["PhysicalResourceId"] == created["PhysicalResourceId"]
    assert (updated["Status"], updated["Data"]) == ("SUCCESS", {"Applied": ""})
    assert set(stack.types) == {""}


def test_deleting_the_stack_deletes_no_leads(stack: CloudFormation, empty: str) -> None:
    ask(stack, "Create")
    assert ask(stack, "Delete")["Status"] == "SUCCESS"
    assert function.run(*function._parts.build()) == []


def test_the_stack_is_told_why_not(stack: CloudFormation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_SECRET_ARN", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:none")
    told = ask(stack, "Create")
    assert told["Status"] == "FAILED"
    assert "ResourceNotFoundException" in told["Reason"]


def test_deleting_works_where_nothing_else_does(
    stack: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IDENTITY_URL")
    assert ask(stack, "Create")["Reason"] == "SettingsMissing: IDENTITY_URL is not set"
    assert ask(stack, "Delete")["Status"] == "SUCCESS"


def make_secret(name: str, username: str, password: str) -> str:
    text = json.dumps({"username": username, "password": password})
    return str(client("secretsmanager").create_secret(Name=name, SecretString=text)["ARN"])


def signs_in(empty: str, password: str) -> bool:
    place = empty.partition("@")[2]
    try:
        psycopg.connect(f"postgresql://{place}", user=ROLE, password=password).close()
    except psycopg.OperationalError:
        return False
    return True


def test_the_role_gets_the_password_that_its_secret_holds_by_now(
    stack: CloudFormation,
    empty: str,
    identity_server: Server,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    for password in ('it\'s \\ "one" $1 :two %s', "after a rotation", identity_server.passwords["app"]):
        monkeypatch.setenv("APP_SECRET_ARN", make_secret(password[:8].strip("' \\"), ROLE, password))
        assert ask(stack, "Update")["Status"] == "SUCCESS"
        assert signs_in(empty, password)
        assert not signs_in(empty, password + "x")
        told = capsys.readouterr().out + json.dumps(stack.answers)
        told += "".join(each.getMessage() for each in caplog.records if each.name.startswith("migrate"))
        assert password not in told


def test_an_operator_gives_the_role_a_rotated_password_without_a_deployment(
    stack: CloudFormation, empty: str, identity_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(stack, "Create")
    # A role is of the whole server, which other tests use, too: it gets its own password back.
    for password in ("rotated", identity_server.passwords["app"]):
        client("secretsmanager").put_secret_value(
            SecretId="app", SecretString=json.dumps({"username": ROLE, "password": password})
        )
        assert not signs_in(empty, password)
        assert function.handler({}, CONTEXT) == {"Applied": ""}
        assert signs_in(empty, password)
    assert len(stack.answers) == 1, "CloudFormation asked nothing"
    monkeypatch.delenv("IDENTITY_URL")
    function._parts.cache_clear()
    with pytest.raises(settings.SettingsMissing):
        function.handler({}, CONTEXT)


def test_a_secret_that_is_not_the_role_s_is_refused(
    stack: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APP_SECRET_ARN", make_secret("wrong", "postgres", "secret"))
    told = ask(stack, "Create")
    assert told["Reason"] == f"ValueError: the secret's username must be {ROLE}, not postgres"


def test_a_verifier_is_what_the_driver_s_library_makes(identity_server: Server) -> None:
    with psycopg.connect(identity_server.owner("postgres")) as connection:
        theirs = connection.pgconn.encrypt_password(b"p:$ '", b"me", b"scram-sha-256").decode()
    salt = base64.b64decode(theirs.split("$")[1].partition(":")[2])
    assert scram_verifier("p:$ '", salt) == theirs


@pytest.mark.parametrize("password", ["\u00e9", "a\nb", ""])
def test_a_password_that_could_be_written_in_two_ways_is_refused(password: str) -> None:
    with pytest.raises(ValueError, match="printable ASCII"):
        scram_verifier(password, b"salt")
