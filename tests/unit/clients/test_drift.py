"""The gate: a change of the API without new clients is noticed, also where node is missing."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from infra import client_types
from ingest.openapi import document
from ingest.web.routes import DOCUMENT, REFERENCE


@pytest.mark.parametrize("path", [client_types.TYPESCRIPT, client_types.PYTHON], ids=lambda each: each.name)
def test_a_client_was_made_from_the_api_that_is_served(path: Path) -> None:
    assert client_types.digest_in(path) == client_types.digest(), "the API has changed: run `make clients`"


def test_what_is_served_is_what_the_routes_declare() -> None:
    assert DOCUMENT.read_text() == client_types.served_document(), "the API has changed: run `make clients`"
    assert REFERENCE.read_text() == client_types.reference_page(), "the API has changed: run `make clients`"


def planted(change: Any) -> str:
    made = json.loads(json.dumps(document()))
    change(made)
    return hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()


@pytest.mark.parametrize(
    "change",
    [
        lambda made: made["paths"].pop("/v1/leaderboards/{board}"),
        lambda made: made["components"]["schemas"]["Event"]["required"].append("timezone"),
        lambda made: made["paths"]["/v1/users/{user_id}"]["get"]["responses"]["200"]["content"][
            "application/json"
        ]["schema"]["properties"].pop("as_of"),
    ],
)
def test_a_planted_change_of_the_api_has_another_digest(change: Any) -> None:
    assert planted(lambda made: None) == client_types.digest()
    assert planted(change) not in {client_types.digest_in(client_types.TYPESCRIPT), ""}


def test_the_pages_elements_were_made_from_the_clients_sources() -> None:
    made_from = client_types.digest_of(client_types.element_sources())
    assert client_types.digest_in(client_types.ELEMENTS, client_types.ELEMENTS_MARK) == made_from, (
        "client/typescript/src/elements has changed: run `make clients`"
    )


def test_a_planted_change_of_an_element_has_another_digest(tmp_path: Path) -> None:
    copies = [tmp_path / path.name for path in client_types.element_sources()]
    for path, copy in zip(client_types.element_sources(), copies, strict=True):
        copy.write_text(path.read_text())
    assert client_types.digest_of(copies) == client_types.digest_of(client_types.element_sources())
    copies[0].write_text(copies[0].read_text() + "\n")
    assert client_types.digest_of(copies) != client_types.digest_of(client_types.element_sources())
    assert client_types.digest_of(copies[1:]) != client_types.digest_of(client_types.element_sources())


def test_a_file_without_a_digest_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "api.ts").write_text("export {}")
    assert client_types.digest_in(tmp_path / "api.ts") != client_types.digest()
