"""A connection without a password in its URL checks the server's certificate by the layer's authorities."""

import sys
from pathlib import Path

import pytest

from adapters.postgresql.postgres import BUNDLE, ca_bundle, database
from adapters.postgresql.sql import PostgresUnavailable
from tests.support.identity_server import Server
from tests.support.tls_postgres import make_authority, securing

pytestmark = pytest.mark.xdist_group("identity")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.postgresql.postgres.ca_bundle", ca_bundle.__wrapped__)


def ask(server: Server, port: int, host: str = "localhost") -> None:
    owned = database(f"postgresql://postgres@{host}:{port}/postgres", lambda: server.passwords["owner"])
    try:
        owned.run(lambda each: each.execute("SELECT 1"))
    finally:
        owned.close()


def test_the_layer_s_list_lets_the_right_server_in(
    identity_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, certificate = make_authority(tmp_path, "localhost")
    (tmp_path / BUNDLE).write_bytes(authority.read_bytes())
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    with securing(identity_server.port, certificate) as port:
        ask(identity_server, port)
        with pytest.raises(PostgresUnavailable, match='does not match host name "127'):
            ask(identity_server, port, "127.0.0.1")
    with pytest.raises(PostgresUnavailable, match="server does not support SSL"):
        ask(identity_server, identity_server.port)


def test_another_authority_s_server_is_not_let_in(
    identity_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
    ours, _ = make_authority(tmp_path / "ours", "localhost")
    _, certificate = make_authority(tmp_path / "theirs", "localhost")
    (tmp_path / BUNDLE).write_bytes(ours.read_bytes())
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    with (
        securing(identity_server.port, certificate) as port,
        pytest.raises(PostgresUnavailable, match="SSL error"),
    ):
        ask(identity_server, port)


def test_without_a_list_it_says_so(identity_server: Server) -> None:
    with pytest.raises(FileNotFoundError, match=r"rds-global-bundle\.pem is not in the function's layer"):
        ask(identity_server, identity_server.port)
