from collections.abc import Iterator

import pytest

from tests.oracle.machines import Stream
from tests.support.engine import Engine, running


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    with running() as started:
        yield started


@pytest.fixture(scope="session")
def stream(engine: Engine) -> Stream:
    return Stream(engine)


@pytest.fixture
def environment(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    for name, value in engine.environment().items():
        monkeypatch.setenv(name, value)
    return engine
