"""End-to-end tests run against the laptop cloud: the real template, deployed, with IAM enforced."""

import contextlib
import io
import itertools
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from local import cli
from local.api import Api
from local.cloud import laptop_cloud, processes
from local.cloud.patience import drain
from local.stack import Stack
from rules.engagement.boards import partitions_of
from rules.parts import parameters_of
from tests.faults.invariants import violations
from tests.recipes.scratch import Scratch, copied
from tests.support.changed_cloud import put_back
from tests.support.stack_tables import Table, tables_of
from tests.support.template import ROOT

NAMES = itertools.count()


# Of the package and not of the session: a cloud that idles takes an eighth of a core from the tests after it.
@pytest.fixture(scope="package")
def stack() -> Iterator[Stack]:
    was_up = processes.pid_of("ministack") is not None
    cloud = laptop_cloud.up()
    put_back(cloud)  # a run that was killed may have changed it
    yield cloud
    if not was_up:
        laptop_cloud.down()


@pytest.fixture(scope="package")
def cloud_without_parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scratch]:
    """A cloud of its own, of a copy of the checkout, without leads and questions: nobody else's users are there.

    Its tests are in the group `cloud without parts`, and run its command line in the copy.
    """
    scratch = copied(tmp_path_factory.mktemp("without"))
    (scratch.root / ".local").mkdir()
    for name in ("bin", "tools", "compiled"):  # what was installed and compiled is the same
        (ROOT / ".local" / name).mkdir(parents=True, exist_ok=True)
        (scratch.root / ".local" / name).symlink_to(ROOT / ".local" / name)
    options = [f"--parameter={name}={value}" for name, value in parameters_of(()).items()]
    try:
        scratch.must(scratch.python("-m", "local.cli", "up", *options))
        yield scratch
    finally:
        scratch.python("-m", "local.cli", "down")
        shutil.rmtree(scratch.root, ignore_errors=True)


@pytest.fixture(scope="package")
def table(stack: Stack) -> Table:
    return tables_of(stack)


@pytest.fixture(scope="package")
def admin(stack: Stack) -> Api:
    return Api(stack)


@pytest.fixture
def user() -> str:
    """A user nobody has seen before, also not in an earlier run on the same cloud."""
    return f"t{time.time_ns()}-{next(NAMES)}"


@pytest.fixture
def me(stack: Stack, user: str) -> Api:
    return Api(stack, user, admin=False)


@pytest.fixture
def post(admin: Api) -> Callable[..., list[dict[str, Any]]]:
    """Post events as an admin; returns the results."""

    def send(*events: dict[str, Any]) -> list[dict[str, Any]]:
        status, answer = admin.call("POST", "/v1/events", {"events": list(events)})
        assert status == 202, answer
        results: list[dict[str, Any]] = answer["results"]
        return results

    return send


@pytest.fixture
def settled(stack: Stack) -> Callable[..., None]:
    """Wait for all effects, then demand rule 7 of the users named."""

    def check(*users: str) -> None:
        drain(stack)
        for user in users:
            found = violations(stack.client("dynamodb"), user, tables=stack.tables)
            assert not found

    return check


def event(user: str, key: str, occurred_at: str | None = None, **more: Any) -> dict[str, Any]:
    """A valid event; it occurs now unless told otherwise."""
    return {
        "user_id": user,
        "idempotency_key": key,
        "event_type": "CONTRIBUTION",
        "occurred_at": occurred_at or datetime.now(UTC).isoformat(),
        **more,
    }


def printed(*words: str) -> str:
    """What `streakline` prints, in this process: another one would import everything again.

    Raises RuntimeError, with its message, if the command fails.
    """
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setattr("sys.argv", ["streakline", *words])
        try:
            cli.main()
        except SystemExit as ended:
            raise RuntimeError(f"{ended}: {out.getvalue()}") from ended
    return out.getvalue()


def is_indexed(stack: Stack, user: str) -> bool:
    """Whether a user is in the index of streaks, in a partition that lists read."""
    key = {"user_id": {"S": user}}
    found = stack.client("dynamodb").get_item(TableName=stack.tables["UserStreaks"], Key=key)["Item"]
    there = found.get("leaderboard_partition", {}).get("S", "")
    return there in partitions_of(there.partition("#")[0], int(stack.outputs["LeaderboardShards"]))


@pytest.fixture
def organization() -> str:
    return f"org{time.time_ns()}"


@pytest.fixture
def lead_of(stack: Stack) -> Callable[..., str]:
    """Find the lead that an integration's event was stored for."""

    def find(organization: str, external_event_id: str, integration: str = "ecommerce") -> str:
        path = f"/v1/leads?organization_id={organization}&integration={integration}"
        answer = Api(stack).get(f"{path}&external_event_id={external_event_id}")
        return str(answer["lead_id"])

    return find
