"""The laptop's PostgreSQL: started, stopped and started again with its data."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from adapters.leads.identity_store import IdentityStore
from adapters.postgresql.postgres import Postgres
from local.cloud import embedded_postgres, processes
from rules.leads.identity import Identity
from tests.support.identity_server import NOW

pytestmark = pytest.mark.xdist_group("identity")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Not pytest's own: another run of pytest closes it to other users, and PostgreSQL is one."""
    with tempfile.TemporaryDirectory(prefix="streakline-local-") as name:
        monkeypatch.setattr(processes, "LOCAL", Path(name))
        monkeypatch.setattr(processes, "LOGS", Path(name) / "logs")
        monkeypatch.setattr(embedded_postgres, "FOLDER", Path(name) / "postgres")
        yield Path(name)


def test_it_keeps_its_data_and_its_passwords(folder: Path) -> None:
    port = processes.free_port()
    try:
        admin_url = embedded_postgres.start(port)
        url = embedded_postgres.migrate(admin_url)
        assert (embedded_postgres.start(port), embedded_postgres.migrate(admin_url)) == (admin_url, url)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(f"postgresql://postgres:wrong@127.0.0.1:{port}/postgres")
        assert not list((folder / "postgres").glob(".s.PGSQL*"))
        held = IdentityStore(Postgres(url))  # a client that stays connected delays no stop
        first = held.resolve(
            "acme", [Identity("email", "a@x")], {"source": "acme/shop", "external_event_id": "1"}, NOW
        )
        assert processes.stop("postgres")
        assert "database system is shut down" in (folder / "logs" / "postgres.log").read_text()
        assert embedded_postgres.start(port) == admin_url
        assert embedded_postgres.migrate(admin_url) == url
        assert (
            held.resolve(
                "acme", [Identity("email", "a@x")], {"source": "acme/shop", "external_event_id": "2"}, NOW
            )
            == first
        )
    finally:
        processes.stop("postgres")
    assert (folder / "postgres.json").stat().st_mode & 0o077 == 0
