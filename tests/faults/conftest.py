from collections.abc import Iterator

import pytest

from tests.support.engine import Engine, running


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    with running() as started:
        yield started


@pytest.fixture
def environment(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    for name, value in engine.environment().items():
        monkeypatch.setenv(name, value)
    return engine


@pytest.fixture
def fresh_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """An engine in which nobody has left anything: a seed leads to the same in each process, whatever ran before."""
    with running() as started:
        for name, value in started.environment().items():
            monkeypatch.setenv(name, value)
        yield started


@pytest.fixture(scope="module")
def two_engines() -> Iterator[tuple[Engine, Engine]]:
    with running() as one, running() as other:
        yield one, other


@pytest.fixture
def regions(two_engines: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch) -> tuple[Engine, Engine]:
    """Two engines that other tests leave nothing in: a book of rules would change what a seed leads to."""
    for name, value in two_engines[0].environment().items():
        monkeypatch.setenv(name, value)
    return two_engines
