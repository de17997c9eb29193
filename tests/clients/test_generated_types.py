"""The clients' types are those of the API that is served: both are generated anew, and compared."""

import pytest

from infra import client_types
from tests.support.node_tools import packages

pytestmark = pytest.mark.xdist_group("clients")


def test_typescript() -> None:
    packages()
    assert client_types.typescript() == client_types.TYPESCRIPT.read_text(), "run `make clients`"


def test_python() -> None:
    assert client_types.python() == client_types.PYTHON.read_text(), "run `make clients`"
