"""How a connection is opened: with the URL's password, or over TLS with a secret or a signed token."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import botocore.session
import pytest

from adapters.postgresql.postgres import BUNDLE, ca_bundle, connection_arguments, database, iam_token
from adapters.postgresql.rds_data import RdsData

CLUSTER = "arn:aws:rds:eu-west-1:123456789012:cluster:identity"
LIST = "-----BEGIN CERTIFICATE-----\nof RDS\n-----END CERTIFICATE-----\n"


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    (tmp_path / BUNDLE).write_text(LIST)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    ca_bundle.cache_clear()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session/token+")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    yield
    ca_bundle.cache_clear()


def test_a_url_with_a_password_is_taken_as_it_is() -> None:
    found = connection_arguments(urlsplit("postgresql://me:a%40b@127.0.0.1:5433/leads"))
    assert found == {
        "host": "127.0.0.1",
        "port": 5433,
        "user": "me",
        "dbname": "leads",
        "password": "a@b",
    }


def test_a_url_without_one_asks_for_tls_and_a_token() -> None:
    found = connection_arguments(urlsplit("postgresql://app@proxy.example/leads"))
    assert found["sslmode"] == "verify-full"
    assert found["port"] == 5432
    assert found["password"].startswith("proxy.example:5432/?Action=connect&DBUser=app&")


def test_a_secret_takes_the_token_s_place() -> None:
    found = connection_arguments(
        urlsplit("postgresql://owner@cluster.example/leads"), lambda: "from the secret"
    )
    assert (found["password"], found["sslmode"]) == ("from the secret", "verify-full")


def test_a_token_is_what_the_sdk_s_own_client_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    at = datetime(2026, 3, 10, 12, tzinfo=UTC)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda **_: at.replace(tzinfo=None))
    rds: Any = botocore.session.get_session().create_client("rds", region_name="eu-west-1")
    theirs = rds.generate_db_auth_token("proxy.example", 5432, "app")
    assert parse_qs(urlsplit(f"//{iam_token('proxy.example', 5432, 'app')}").query) == parse_qs(
        urlsplit(f"//{theirs}").query
    )


def test_authorities_are_a_file_with_everybody_s() -> None:
    found = Path(ca_bundle()).read_text()
    assert found.count("BEGIN CERTIFICATE") > 100
    assert found.endswith(LIST)


@pytest.mark.parametrize("url", ["", "mysql://a@b/c", "postgresql://host/db", "postgresql://me@/db"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"IDENTITY_URL must be postgresql://.* or rds-data://"):
        database(url)


SECRET = "arn:aws:secretsmanager:eu-west-1:123456789012:secret"


@pytest.mark.parametrize(
    "url",
    [
        "rds-data://leads",
        f"rds-data://leads?cluster={CLUSTER}",
        f"rds-data://?cluster={CLUSTER}&secret={SECRET}:a",
        f"rds-data://leads/more?cluster={CLUSTER}&secret={SECRET}:a",
        f"rds-data://leads?cluster=identity&secret={SECRET}:a",
        f"rds-data://leads?cluster={CLUSTER}&secret=",
        f"rds-data://leads?cluster={CLUSTER}&secret={SECRET}:a&schema=b",
    ],
)
def test_what_is_no_url_of_the_data_api_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"IDENTITY_URL must be postgresql://.* or rds-data://"):
        database(url)


@pytest.mark.parametrize("name", [":rds!cluster-1-x", ":a+b=c.d@e_f/g-Ab1", "%3Aapp-Ab1"])
def test_a_url_of_the_data_api_names_database_cluster_and_secret(name: str) -> None:
    found = RdsData(f"rds-data://Leads_1?cluster={CLUSTER}&secret={SECRET}{name}")
    assert found.database == "Leads_1"
    assert found._names == {"resourceArn": CLUSTER, "secretArn": SECRET + name.replace("%3A", ":")}
