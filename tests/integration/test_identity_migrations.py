"""Migrations are applied once, in order, whoever runs them; a changed one is refused."""

import itertools
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from adapters.postgresql.migrations import FOLDER, PREPARE, MigrationChanged, apply_migrations
from adapters.postgresql.postgres import database
from adapters.postgresql.sql import PostgresRefused
from tests.support.identity_server import WAYS, Server
from tests.support.rds_data_api import OWNER_SECRET, RdsDataApi

pytestmark = pytest.mark.xdist_group("identity")


class Runner:
    """Migrates one database as its owner, one way or the other."""

    def __init__(self, url: str, owner: str) -> None:
        self.url, self.owner = url, owner

    def __call__(self, folder: Path = FOLDER) -> list[str]:
        owned = database(self.url)
        try:
            return owned.run(lambda each: apply_migrations(each, folder))
        finally:
            owned.close()

    def row(self, query: str) -> Any:
        with psycopg.connect(self.owner) as connection:
            return connection.execute(query).fetchone()


@pytest.fixture(params=WAYS)
def run(empty: str, request: pytest.FixtureRequest) -> Runner:
    if request.param == "driver":
        return Runner(empty, empty)
    api: RdsDataApi = request.getfixturevalue("data_api")
    return Runner(api.url(empty.rpartition("/")[2], OWNER_SECRET), empty)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "sql"
    shutil.copytree(FOLDER, folder)
    return folder


def test_all_are_applied_once(run: Runner) -> None:
    names = sorted(path.name for path in FOLDER.glob("*.sql"))
    assert run() == names
    assert run() == []


def test_concurrent_runners_apply_each_once(run: Runner) -> None:
    with ThreadPoolExecutor(4) as threads:
        applied = list(threads.map(run, [FOLDER] * 4))
    assert sorted(itertools.chain(*applied)) == sorted(path.name for path in FOLDER.glob("*.sql"))


def test_a_changed_file_is_refused_before_anything_is_applied(run: Runner, files: Path) -> None:
    run(files)
    (files / "0001_identity.sql").write_text("SELECT 1")
    (files / "0999_new.sql").write_text("CREATE TABLE never (x int)")
    with pytest.raises(MigrationChanged, match=r"0001_identity\.sql was changed after it had been applied"):
        run(files)
    assert run.row("SELECT to_regclass('identity.never')") == (None,)


def test_a_file_that_fails_leaves_nothing(run: Runner, files: Path) -> None:
    (files / "0999_new.sql").write_text("CREATE TABLE half (x int);\n-- next\nSELECT 1 / 0")
    with pytest.raises(PostgresRefused, match=r"division by zero \(SQLSTATE 22012\)"):
        run(files)
    (files / "0999_new.sql").write_text("CREATE TABLE half (x int)")
    assert run(files) == ["0001_identity.sql", "0999_new.sql"]


def test_an_older_version_runs_over_a_newer_schema(run: Runner, files: Path) -> None:
    (files / "0999_new.sql").write_text("CREATE TABLE newer (x int)")
    run(files)
    assert run() == []


def test_no_files_are_a_packaging_error(run: Runner, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no migrations"):
        run(tmp_path)


CATALOG = """
SELECT p.oid::regprocedure::text, pg_get_functiondef(p.oid), p.proacl::text FROM pg_proc AS p
WHERE p.pronamespace = 'identity'::regnamespace;
SELECT table_name, column_name, data_type, column_default, is_nullable, is_identity, generation_expression
FROM information_schema.columns WHERE table_schema = 'identity';
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = 'identity'::regnamespace;
SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'identity';
SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal;
SELECT sequencename, data_type::text, last_value FROM pg_sequences WHERE schemaname = 'identity';
SELECT nspacl::text FROM pg_namespace WHERE nspname = 'identity';
SELECT relname, relacl::text FROM pg_class WHERE relnamespace = 'identity'::regnamespace
"""


def catalog(url: str) -> list[list[Any]]:
    with psycopg.connect(url) as connection:
        return [sorted(connection.execute(query).fetchall(), key=str) for query in CATALOG.split(";")]


def test_statement_by_statement_makes_what_whole_files_make(
    run: Runner, empty: str, identity_server: Server
) -> None:
    whole = identity_server.empty_database()
    with psycopg.connect(whole) as connection:
        connection.execute("; ".join(PREPARE))
        connection.execute("SET search_path = identity, pg_temp")
        for path in sorted(FOLDER.glob("*.sql")):
            connection.execute(path.read_text())
    run()
    assert all(catalog(whole))
    assert catalog(empty) == catalog(whole)


ROLES = ("streakline_leads", "streakline_leads_api")


def test_both_roles_may_do_the_same(run: Runner, empty: str) -> None:
    run()
    allowed = (
        "SELECT p.oid::regprocedure::text FROM pg_proc AS p WHERE p.pronamespace = 'identity'::regnamespace"
        " AND has_function_privilege(%s, p.oid, 'EXECUTE')"
    )
    tables = (
        "SELECT relname FROM pg_class WHERE relnamespace = 'identity'::regnamespace AND relkind = 'r'"
        " AND has_table_privilege(%s, oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')"
    )
    role = (
        "SELECT rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolbypassrls,"
        " rolconfig, has_schema_privilege(oid, 'identity', 'USAGE'), has_schema_privilege(oid, 'identity', 'CREATE')"
        " FROM pg_roles WHERE rolname = %s"
    )
    with psycopg.connect(empty) as connection:
        found = [
            [sorted(connection.execute(query, [name]).fetchall()) for query in (allowed, tables, role)]
            for name in ROLES
        ]
    assert found[0] == found[1]
    assert len(found[0][0]) == 12
    assert found[0][1] == []
