"""A real PostgreSQL for the identity tests: one server a session, a fresh schema where a test wants one."""

import itertools
import subprocess
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from adapters.leads.identity_store import IdentityStore, Resolution
from adapters.postgresql.postgres import Postgres
from adapters.postgresql.postgres import database as database_of
from adapters.postgresql.rds_data import RdsData
from adapters.postgresql.sql import Database
from ingest.leads.identity_migration import ROLE, set_password
from local.cloud import embedded_postgres
from local.cloud.processes import free_port
from local.paths import ROOT
from rules.leads.identity import Identity
from tests.support.rds_data_api import APP_SECRET, OWNER_SECRET, RdsDataApi

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
AUDIT = {"identity_change", "change_lead", "kept_apart"}
# The ways to PostgreSQL: the driver, the RDS Data API.
WAYS = ("driver", "data_api")
TABLES = ("lead", "channel_identity", "lead_organization", *sorted(AUDIT))


@dataclass
class Server:
    folder: Path
    port: int = field(default_factory=free_port)
    process: Any = None
    made: int = 0

    def start(self, attempts: int = 3) -> None:
        self.passwords = embedded_postgres.initialise(self.folder)
        command = embedded_postgres.command(self.folder, self.port)
        log = self.folder.parent / "log"
        with log.open("ab") as out:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out, start_new_session=True)
        deadline = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self.owner("postgres"), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, log.read_text()
                if self.process.poll() is not None:  # somebody else has taken the port meanwhile
                    assert attempts > 1, log.read_text()
                    self.port = free_port()
                    self.start(attempts - 1)
                    return
                time.sleep(0.02)

    def stop(self) -> None:
        """Stop the server. How it ends is test_identity_local's to check: here nothing comes after it."""
        self.process.terminate()
        self.process.wait(timeout=60)

    def owner(self, database: str) -> str:
        return embedded_postgres.url(embedded_postgres.OWNER, self.passwords["owner"], self.port, database)

    def empty_database(self) -> str:
        """Make a database without a schema; returns the owner's URL."""
        self.made += 1
        name = f"empty{self.made}"
        with psycopg.connect(self.owner("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.owner(name)

    def new_database(self) -> str:
        """Make a database with the schema in it; returns its name."""
        self.made += 1
        name = f"d{self.made}"
        embedded_postgres.prepare(self.passwords, self.port, name)
        with psycopg.connect(self.owner(name), autocommit=True) as connection:
            set_password(connection, {"username": ROLE, "password": self.passwords["app"]})
        return name

    def app(self, database: str) -> str:
        return embedded_postgres.url(embedded_postgres.APP_ROLE, self.passwords["app"], self.port, database)

    def data_api(self) -> RdsDataApi:
        """Return a stand-in for the service, with this server as its cluster."""
        owner, app = (embedded_postgres.OWNER, self.passwords["owner"]), (ROLE, self.passwords["app"])
        return RdsDataApi(self.port, {OWNER_SECRET: owner, APP_SECRET: app})


class Counting:
    """Counts what is sent to the server and answered: every execution on a real connection."""

    def __init__(self, url: str) -> None:
        self.postgres = Postgres(url)
        self.trips = 0
        connect = self.postgres.connection
        counted: dict[int, Any] = {}

        def connection() -> Any:
            real = connect()
            if id(real) not in counted:
                counted[id(real)] = real
                exchange = real.wait

                def wait(*args: Any, **kwargs: Any) -> Any:
                    self.trips += 1
                    return exchange(*args, **kwargs)

                real.wait = wait
            return real

        self.postgres.connection = connection  # type: ignore[method-assign]


class CountingCalls:
    """Counts the calls of the Data API, also those of other stores."""

    def __init__(self, url: str, api: RdsDataApi) -> None:
        self.postgres = RdsData(url)
        self.api = api

    @property
    def trips(self) -> int:
        return len(self.api.calls)


@dataclass
class Registry:
    """One database with its store. Every call has another external id unless told.

    api: the Data API that the store uses, instead of the driver.
    """

    server: Server
    database: str
    api: RdsDataApi | None = None
    numbers: Any = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.url = self.api.url(self.database) if self.api else self.server.app(self.database)
        self.counting: Any = CountingCalls(self.url, self.api) if self.api else Counting(self.url)
        self.role = ROLE if self.api else embedded_postgres.APP_ROLE
        self.store = IdentityStore(self.counting.postgres)
        self.owner = psycopg.connect(self.server.owner(self.database), autocommit=True)

    def clear(self) -> None:
        self.owner.execute(
            "TRUNCATE " + ", ".join(f"identity.{each}" for each in TABLES) + " RESTART IDENTITY"
        )
        self.owner.execute("ALTER SEQUENCE identity.lead_number RESTART")

    def see(self, *identities: Identity, organization: str = "acme", external_id: str = "") -> Resolution:
        number = next(self.numbers)
        evidence = {"source": f"{organization}/shop", "external_event_id": external_id or f"event-{number}"}
        return self.store.resolve(organization, identities, evidence, NOW + timedelta(seconds=number))

    def another(self) -> IdentityStore:
        return IdentityStore(self.connect())

    def connect(self) -> Database:
        return database_of(self.url)

    def rows(self, query: str, *values: Any) -> list[Any]:
        return self.owner.execute(query, values).fetchall()

    def dump(self, but: Collection[str] = ()) -> dict[str, list[Any]]:
        return {
            table: sorted(self.rows(f"SELECT t::text FROM identity.{table} AS t"))
            for table in TABLES
            if table not in but
        }

    def groups(self, organization: str = "%") -> set[frozenset[tuple[str, str]]]:
        """All groups, each by its identities."""
        found: dict[int, set[tuple[str, str]]] = {}
        for root, channel, external_id in self.rows(
            "SELECT root_id, channel, external_id FROM identity.lead JOIN identity.channel_identity"
            " USING (lead_id, organization_id) WHERE organization_id LIKE %s",
            organization,
        ):
            found.setdefault(root, set()).add((channel, external_id))
        return {frozenset(each) for each in found.values()}

    def close(self) -> None:
        self.counting.postgres.close()
        self.owner.close()


def undo(registry: Registry, number: int) -> None:
    registry.store.unmerge(None, number, "by mistake", "operator", NOW)
