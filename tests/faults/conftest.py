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


@pytest.fixture
def regions(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Engine, Engine]]:
    """Two engines in which nobody has left anything, as above: a book of rules, too, would change what a seed leads to."""
    with running() as one, running() as other:
        for name, value in one.environment().items():
            monkeypatch.setenv(name, value)
        yield one, other
