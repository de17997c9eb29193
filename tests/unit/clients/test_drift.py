"""The gate: a change of the API without new clients is noticed, also where node is missing."""

import json
from pathlib import Path

import pytest

from infra import client_types
from ingest.web.routes import DOCUMENT, REFERENCE


def digest_in(path: Path, mark: str) -> str:
    """Return the digest that a generated file was made from; "" if it names none."""
    return path.read_text().partition(mark)[2][:64]


@pytest.mark.parametrize("path", [client_types.TYPESCRIPT, client_types.PYTHON], ids=lambda each: each.name)
def test_a_client_was_made_from_the_api_that_is_served(path: Path) -> None:
    assert digest_in(path, client_types.MARK) == client_types.digest(), (
        "the API has changed: run `make clients`"
    )


def test_what_is_served_is_what_the_routes_declare() -> None:
    assert DOCUMENT.read_text() == client_types.stored_document(), "the API has changed: run `make clients`"
    assert REFERENCE.read_text() == client_types.reference_page(), "the API has changed: run `make clients`"


def test_the_pages_elements_were_made_from_the_clients_sources() -> None:
    made_from = client_types.digest_of(client_types.element_sources())
    assert digest_in(client_types.ELEMENTS, client_types.ELEMENTS_MARK) == made_from, (
        "client/typescript/src/elements has changed: run `make clients`"
    )


def test_the_pages_reader_of_yaml_is_of_the_locked_version() -> None:
    lock = json.loads((client_types.TYPESCRIPT_CLIENT / "package-lock.json").read_text())
    version = lock["packages"][f"node_modules/{client_types.YAML_PACKAGE}"]["version"]
    made_from = client_types.YAML.read_text().partition("\n")[0]
    assert made_from == f"/* {client_types.YAML_PACKAGE} {version}", "another is locked: run `make clients`"
