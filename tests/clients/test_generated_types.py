"""The clients' types are those of the API that is served: both are generated anew, and compared."""

import json
from pathlib import Path

import pytest

from infra import client_types
from tests.support.node_tools import CLIENT, must, packages

pytestmark = pytest.mark.xdist_group("clients")


def test_typescript() -> None:
    packages()
    assert client_types.typescript() == client_types.TYPESCRIPT.read_text(), "run `make clients`"


def test_python() -> None:
    assert client_types.python() == client_types.PYTHON.read_text(), "run `make clients`"


def test_the_pages_reader_of_yaml_is_what_its_package_makes() -> None:
    packages()
    assert client_types.yaml() == client_types.YAML.read_text(), "run `make clients`"


def test_the_pages_elements_are_what_their_sources_make(tmp_path: Path) -> None:
    packages()
    assert client_types.elements() == client_types.ELEMENTS.read_text(), "run `make clients`"
    named = {path.relative_to(CLIENT).as_posix() for path in client_types.element_sources()}
    listed = tmp_path / "listed.json"
    options = ("--bundle", f"--metafile={listed}", f"--outfile={tmp_path / 'bundle.js'}")
    must(str(packages() / "esbuild"), client_types.ELEMENTS_ENTRY, *options)
    assert json.loads(listed.read_text())["inputs"].keys() <= named, (
        "the digest is of all that the bundle is made from"
    )
