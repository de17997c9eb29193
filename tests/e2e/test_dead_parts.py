"""Each part of the laptop cloud dies in turn: `status` names it, `up` mends it, and nothing is lost."""

import contextlib
import io
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import urllib3

from local import cli
from local.api import Api
from local.cloud import embedded_postgres, laptop_cloud, processes
from local.cloud.laptop_cloud import troubles
from local.stack import Stack
from tests.e2e.conftest import event, printed

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")

NAMES = {"poller": "poller", "redis": "Redis", "postgres": "PostgreSQL", "ministack": "emulator"}


@pytest.fixture
def whole(stack: Stack) -> Iterator[None]:
    """The cloud is whole again afterwards, whatever happens."""
    yield
    if any(troubles(stack).values()):
        laptop_cloud.up()


def printed_status() -> tuple[int, dict[str, Any]]:
    """What `streakline status --json` prints, and its exit status."""
    out, code = io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setattr("sys.argv", ["streakline", "status", "--json"])
        try:
            cli.main()
        except SystemExit as ended:
            code = int(str(ended.code))
    told: dict[str, Any] = json.loads(out.getvalue())
    return code, told


def once(stack: Stack, path: str) -> tuple[int, Any]:
    """What the API answers an admin at once: `Api` would wait, and ask again."""
    headers = {"authorization": f"Bearer {Api(stack).token}"}
    answer = urllib3.request("GET", stack.api_url + path, headers=headers, retries=False)
    return answer.status, answer.json()


def kill(process: str, how: signal.Signals = signal.SIGKILL) -> None:
    """Signal the process itself and none of its children, as an operating system short of memory does."""
    pid = processes.pid_of(process)
    assert pid
    os.kill(pid, how)
    deadline = time.monotonic() + 10
    while how is signal.SIGKILL and processes.pid_of(process):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    "process",
    ["poller", "redis"],
)
@pytest.mark.usefixtures("whole")
def test_a_dead_part_is_named_and_mended_and_nothing_is_lost(
    stack: Stack, user: str, organization: str, settled: Callable[..., None], lead_of: Any, process: str
) -> None:
    assert printed_status()[1]["parts"][NAMES[process]]["runs"]
    kill(process)
    assert Api(stack).call("POST", "/v1/events", {"events": [event(user, "1"), event(user, "2")]})[0] == 202
    order = {"id": 7, "created_at": "2026-03-01T10:00:00Z", "currency": "USD", "total_price": "11.77"}
    lead = {"organization_id": organization, "source": "ecommerce"}
    body = {**lead, "payload": {**order, "customer": {"email": f"{organization}@example.com"}}}
    assert Api(stack).call("POST", "/v1/leads/events", body)[0] == 202

    code, told = printed_status()
    assert code == 1
    assert f"{NAMES[process]} does not run" in told["verdict"]
    assert told["parts"][NAMES[process]] == {"runs": False, "state": "does not run"}
    with pytest.raises(RuntimeError, match=r"Something is wrong with the laptop cloud: .*does not run"):
        printed("status")
    if process == "poller":
        assert told["consumers"]["Engagement"]["behind_seconds"] > 0
    if process == "redis":
        status, answer = once(stack, "/v1/leaderboards/points")
        assert status == 503 or answer["entries"] or not answer["is_old"]

    laptop_cloud.up()
    settled(user)
    assert printed_status()[1]["parts"][NAMES[process]]["runs"]
    assert Api(stack).get(f"/v1/users/{user}")["balance"] == 20
    deadline = time.monotonic() + 120
    while True:
        with contextlib.suppress(RuntimeError, AssertionError, KeyError):
            assert lead_of(organization, "order:7")
            break
        assert time.monotonic() < deadline, "the lead's event is lost"
        time.sleep(0.5)


@pytest.mark.usefixtures("whole")
def test_a_part_that_is_there_and_does_not_answer_is_mended_too() -> None:
    kill("redis", signal.SIGSTOP)
    code, told = printed_status()
    assert (code, told["parts"]["Redis"]["state"]) == (1, "does not answer")
    laptop_cloud.up()
    assert printed_status()[1]["parts"]["Redis"]["runs"]


@pytest.mark.usefixtures("whole")
def test_a_server_whose_processes_are_stopped_is_mended() -> None:
    """All but the first one, which dies."""
    first = int((embedded_postgres.FOLDER / "postmaster.pid").read_text().split()[0])
    others = sorted({*processes.working_in(embedded_postgres.FOLDER)} - {first})
    assert others
    for pid in others:
        with contextlib.suppress(ProcessLookupError):  # one of a connection may end meanwhile
            os.kill(pid, signal.SIGSTOP)
    os.kill(first, signal.SIGKILL)
    assert printed_status()[1]["parts"]["PostgreSQL"]["runs"] is False
    laptop_cloud.up()
    assert printed_status()[1]["parts"]["PostgreSQL"]["runs"]


def test_a_queue_whose_consumer_is_not_fed_is_named_and_mended(stack: Stack) -> None:
    client, function = stack.client("lambda"), stack.outputs["LeadsFunctionName"]
    for each in client.list_event_source_mappings(FunctionName=function)["EventSourceMappings"]:
        client.update_event_source_mapping(UUID=each["UUID"], Enabled=False)
    try:
        code, told = printed_status()
    finally:
        laptop_cloud.up()
    assert code == 1
    what = "Leads is not fed: an event source mapping is Disabled"
    assert {"what": what, "mend": "`streakline up` enables it again"} in told["problems"]
    assert what not in [each["what"] for each in printed_status()[1]["problems"]]


def test_an_emulator_that_does_not_answer_is_named_and_the_rest_is_still_seen(stack: Stack) -> None:
    kill("ministack", signal.SIGSTOP)
    try:
        code, told = printed_status()
    finally:
        kill("ministack", signal.SIGCONT)
    assert code == 1
    assert told["verdict"] == "Something is wrong with the laptop cloud: emulator does not answer."
    assert {name: each["runs"] for name, each in told["parts"].items()} == {
        "emulator": False,
        "poller": True,
        "Redis": True,
        "PostgreSQL": True,
    }
    assert printed_status()[1]["parts"]["emulator"]["runs"]


def test_a_function_s_log_is_read_by_its_name(stack: Stack, user: str, settled: Callable[..., None]) -> None:
    Api(stack).call("POST", "/v1/events", {"events": [event(user, "1")]})
    settled(user)
    lines = printed("logs", "engagement", "--since", "5m").splitlines()
    assert any('"message":"batch"' in each for each in lines)
    assert [each[:24] for each in lines] == sorted(each[:24] for each in lines)
    with pytest.raises(RuntimeError, match="did you mean Engagement"):
        printed("logs", "engagemant")
