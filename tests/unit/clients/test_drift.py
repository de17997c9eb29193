"""The gate: a change of the API without new clients is noticed, also where node is missing."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from infra import client_types
from ingest.openapi import document


@pytest.mark.parametrize("path", [client_types.TYPESCRIPT, client_types.PYTHON], ids=lambda each: each.name)
def test_a_client_was_made_from_the_api_that_is_served(path: Path) -> None:
    assert client_types.digest_in(path) == client_types.digest(), "the API has changed: run `make clients`"


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


def test_a_file_without_a_digest_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "api.ts").write_text("export {}")
    assert client_types.digest_in(tmp_path / "api.ts") != client_types.digest()
