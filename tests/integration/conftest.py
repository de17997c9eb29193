import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from adapters.platform.aws import client
from adapters.platform.redis import Redis
from ingest.leads import leads_api
from tests.support import redis_servers
from tests.support import site as users_site
from tests.support.engine import TABLES, Engine, running
from tests.support.identity_server import Registry, Server
from tests.support.lead_processors import Leads
from tests.support.lead_site import Site
from tests.support.rds_data_api import RdsDataApi
from tests.support.rds_data_server import serving
from tests.support.template import table_definition
from tests.support.webhooks import NOW


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave each module to one process: each other one would make the module's fixtures anew."""
    for each in items:
        if "/tests/integration/" in str(each.path) and not each.get_closest_marker("xdist_group"):
            each.add_marker(pytest.mark.xdist_group(each.path.stem))


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    with running() as started:
        yield started


@pytest.fixture(scope="module")
def api(engine: Engine) -> Iterator[users_site.Site]:
    """The whole API in the process (tests/support/site.py)."""
    with users_site.site(engine) as prepared:
        yield prepared


@pytest.fixture
def user() -> str:
    """A user nobody has seen before."""
    return f"user-{uuid.uuid4()}"


@pytest.fixture(scope="session")
def lone_redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real Redis, for tests of something else."""
    with redis_servers.running(tmp_path_factory.mktemp("redis"), is_cluster=False) as url:
        yield url


@pytest.fixture(scope="session")
def redis_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[bool], str]]:
    """Starts a Redis of each kind once: a cluster's node takes no writes in its first two seconds."""
    with ExitStack() as started:

        @cache
        def url(is_cluster: bool) -> str:
            server = redis_servers.running(tmp_path_factory.mktemp("redis"), is_cluster)
            return started.enter_context(server)

        yield url


@pytest.fixture(scope="module", params=["alone", "cluster"])
def redis_url(request: pytest.FixtureRequest, redis_of: Callable[[bool], str]) -> str:
    """A real Redis that holds nothing, first alone and then in cluster mode: for tests of what we do with it."""
    url = redis_of(request.param == "cluster")
    Redis(url).call("FLUSHALL")
    return url


@pytest.fixture
def dynamodb(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """DynamoDB by moto, in the process, with the template's tables."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        import boto3

        client = boto3.client("dynamodb")
        for table in TABLES:
            client.create_table(**table_definition(table, table))
        yield client


@pytest.fixture(scope="session")
def identity_server() -> Iterator[Server]:
    """A real PostgreSQL, in a folder of its own as that of tests/sql. Its tests belong to the xdist group "identity"."""
    with tempfile.TemporaryDirectory(prefix="streakline-identity-") as folder:
        server = Server(Path(folder) / "data")
        server.start()
        yield server
        server.stop()


@pytest.fixture(scope="session")
def identity_database(identity_server: Server) -> str:
    return identity_server.new_database()


@pytest.fixture
def empty(identity_server: Server) -> str:
    """The owner's URL of a database without a schema."""
    return identity_server.empty_database()


@pytest.fixture(scope="session")
def served_data_api(identity_server: Server) -> Iterator[tuple[RdsDataApi, str]]:
    api = identity_server.data_api()
    with serving(api) as url:
        yield api, url


@pytest.fixture
def data_api(served_data_api: tuple[RdsDataApi, str]) -> Iterator[RdsDataApi]:
    """The RDS Data API of the identity server; clients find it by the environment."""
    api, url = served_data_api
    client.cache_clear()
    with pytest.MonkeyPatch.context() as environment:  # a test may undo its own
        environment.setenv("AWS_ENDPOINT_URL_RDS_DATA", url)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            environment.setenv(name, "test")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        yield api
    client.cache_clear()
    assert (api.refusals, api.lost) == ([], []), "the test did not get there"


@pytest.fixture
def registry(
    request: pytest.FixtureRequest, identity_server: Server, identity_database: str
) -> Iterator[Registry]:
    """Nobody is known. By the driver, unless a test is parametrised over WAYS."""
    by_api = getattr(request, "param", "driver") == "data_api"
    api = request.getfixturevalue("data_api") if by_api else None
    registry = Registry(identity_server, identity_database, api)
    registry.clear()
    yield registry
    registry.close()


@pytest.fixture
def leads(engine: Engine, request: pytest.FixtureRequest) -> Leads:
    return Leads(engine.own_client("dynamodb"), request.node.name)


@pytest.fixture
def site(engine: Engine, registry: Registry) -> Site:
    return Site(engine, registry)


@pytest.fixture
def served(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """The leads API's own wiring."""
    for name, value in {**engine.environment(), "LEAD_QUEUE_URL": engine.queue_url}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("adapters.clock.now", lambda: NOW)
    client.cache_clear()
    leads_api._parts.cache_clear()
    return engine
