"""For all tests."""

import atexit
import gc
import os
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from local.paths import LOCAL, ROOT
from tests.support import calls
from tests.support.chromium import browser
from tests.support.effort import LEAVES_NONE, effort
from tests.support.engine import stop_servers
from tests.support.memory import forget

__all__ = ["browser"]  # here, so that a process has one

# A loaded machine is no failure: properties are judged by their result and not by their time.
# Each run tries other examples. `make check` tries a twentieth of what Hypothesis would, `make test` a tenth.
settings.register_profile("streakline", deadline=None, max_examples=effort(10, soak=500))
settings.register_profile("gate", deadline=None, max_examples=5)
settings.load_profile("streakline")
if "PYTEST_XDIST_WORKER" in os.environ:
    gc.disable()  # until it has collected: nothing that it imports is garbage
calls.record_calls()  # before anything makes a client
# The folders whose tests run functions as they are, on engines; elsewhere clients are stubs and bugs are planted.
WITH_CALLS = {"integration", "lake", "sql"}


# The tests that this run leaves to `make soak`, with what proves the same here. Their list is a file.
LEFT_TO_SOAK: dict[str, str] = {}
LEFT_FILE = LOCAL / "left-to-soak.txt"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is left to `make soak`. Then freeze what is there: to look through it for garbage took a tenth of all CPU."""
    left, stay = [], []
    for each in items:
        if not LEAVES_NONE and (mark := each.get_closest_marker("only_soak")):
            left.append(each)
            LEFT_TO_SOAK[each.nodeid.partition("@")[0]] = mark.args[0]
        else:
            stay.append(each)
    config.hook.pytest_deselected(items=left)
    items[:] = stay
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_to_soak"] = LEFT_TO_SOAK
    stop_servers()
    gc.collect()
    gc.freeze()  # pytest looks for garbage five times more, half a second each
    atexit.register(gc.unfreeze)  # else libraries report at the end what they take for leaks


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse to run where groups are not kept together: there is one laptop cloud, for one process."""
    if int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) == 1:
        return
    apart = [
        each.nodeid
        for each in session.items
        if each.get_closest_marker("xdist_group") and "@" not in each.nodeid
    ]
    if apart:
        raise pytest.UsageError(f"xdist does not keep groups together: {apart[0]} and {len(apart) - 1} more")


GIVE_WAY = 5


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let all other tests give way to those of the laptop cloud: one process runs these, and a run ends with them.

    The cloud's process has them from its first test on: xdist begins with the largest groups.
    """
    if "PYTEST_XDIST_WORKER" in os.environ and os.nice(0) < GIVE_WAY and not item.nodeid.endswith("@cloud"):
        os.nice(GIVE_WAY)


@pytest.fixture(autouse=True, scope="module")
def no_memory_of_other_modules() -> Iterator[None]:
    """A handler keeps its parts for the life of its process; here one process runs all modules."""
    forget()
    yield
    forget()


@pytest.fixture(autouse=True)
def calls_are_known(request: pytest.FixtureRequest) -> Iterator[None]:
    """No function calls AWS but as tests/infra/calls.json has it."""
    yield
    found = calls.seen()
    lacking = calls.unknown(found) if request.path.parent.name in WITH_CALLS else {}
    assert not lacking, f"tests/infra/calls.json has not these; a run with CALLS=write adds them: {lacking}"


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker has deselected: it collects, and the process that prints does not."""
    LEFT_TO_SOAK.update(getattr(node, "workeroutput", {}).get("left_to_soak", {}))


SECONDS = defaultdict[str, float](float)
MODULES_SHOWN = 10


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up what each module takes, set-up included."""
    SECONDS[report.nodeid.partition("::")[0]] += report.duration


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many tests did not run, which were skipped and why; then the slowest modules.

    What is slow and has never found a fault belongs to `make soak`.
    """
    skipped = terminalreporter.stats.get("skipped", [])
    if LEFT_TO_SOAK:
        LEFT_FILE.parent.mkdir(exist_ok=True)
        lines = (f"{name}: proven by {proven_by}\n" for name, proven_by in sorted(LEFT_TO_SOAK.items()))
        LEFT_FILE.write_text("".join(lines))
    left = (
        f", {len(LEFT_TO_SOAK)} left to make test-all ({LEFT_FILE.relative_to(ROOT)})" if LEFT_TO_SOAK else ""
    )
    terminalreporter.section(f"{len(skipped)} skipped{left}")
    for each in skipped:
        terminalreporter.write_line(f"skipped {each.nodeid}: {each.longrepr[-1]}")
    if terminalreporter.config.getoption("durations"):
        terminalreporter.section(
            f"slowest {MODULES_SHOWN} modules of {len(SECONDS)}, {sum(SECONDS.values()):.0f}s in all"
        )
        for module in sorted(SECONDS, key=SECONDS.__getitem__)[: -MODULES_SHOWN - 1 : -1]:
            terminalreporter.write_line(f"{SECONDS[module]:8.1f}s {module}")
