"""A handler answers with the contract's status, code and message, and asks no store that it does not need."""

import json
import re
from typing import Any

import pytest

import ingest.engagement.user_services
import ingest.engagement.users_api
import ingest.operations_api
from ingest import openapi
from ingest.web.served_parts import served_document
from rules.parts import ALL_PARTS
from tests.support.http_requests import called
from tests.support.template import ROOT


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nothing", 404, "not_found"),
        ("GET", "/v1/users/v", 403, "forbidden"),
        ("GET", "/v1/users/v/ledger", 403, "forbidden"),
        ("POST", "/v1/users/v/redemptions", 403, "forbidden"),
        ("POST", "/v1/users/v/streak/repair", 403, "forbidden"),
        ("PUT", "/v1/users/v/timezone", 403, "forbidden"),
        ("GET", "/v1/leaderboards/points/users/v", 403, "forbidden"),
        ("GET", "/v1/boards/weekly/users/v", 403, "forbidden"),
        ("GET", "/v1/users/v/boards", 403, "forbidden"),
        ("PUT", "/v1/users/v/boards", 403, "forbidden"),
        ("PUT", "/v1/users/v/groups", 403, "forbidden"),
        ("GET", "/v1/users/v/friends", 403, "forbidden"),
        ("PUT", "/v1/users/v/friends/w", 403, "forbidden"),
        ("DELETE", "/v1/users/v/blocked/w", 403, "forbidden"),
        ("GET", "/v1/users/u%00", 400, "invalid_parameter"),
    ],
)
def test_a_refusal_has_the_contract_s_shape(
    method: str, path: str, status: int, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(_: str) -> Any:
        raise AssertionError("no store may be asked")

    ingest.engagement.user_services.services.cache_clear()
    monkeypatch.setattr(ingest.engagement.user_services.services, "client", never)
    answer = called(ingest.engagement.users_api.handler, method, path)
    error = json.loads(answer["body"])["error"]
    assert (answer["statusCode"], error["code"]) == (status, code)
    assert error["message"]


def test_health_and_the_description_ask_no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest.operations_api, "_parts", lambda: pytest.fail("a store was asked"))
    assert called(ingest.operations_api.handler, "GET", "/v1/health")["statusCode"] == 200
    served = called(ingest.operations_api.handler, "GET", "/v1/openapi.json")
    assert json.loads(served["body"]) == served_document(openapi.document(), ALL_PARTS)
    assert served["headers"]["Cache-Control"] == "public, max-age=300"


def test_what_is_said_of_people_is_kept_by_no_browser() -> None:
    for handler, method, path in (
        (ingest.engagement.users_api.handler, "GET", "/v1/users/v"),
        (ingest.engagement.users_api.handler, "GET", "/v1/nothing"),
        (ingest.operations_api.handler, "GET", "/v1/health"),
    ):
        headers = called(handler, method, path)["headers"]
        assert (headers["Cache-Control"], headers["X-Content-Type-Options"]) == ("no-store", "nosniff")


def test_no_door_answers_past_the_function_that_guards_answers() -> None:
    """A Response that a door makes itself must carry the same headers."""
    for path in (ROOT / "ingest").rglob("*.py"):
        for made in re.findall(r"Response\(\d.*", path.read_text()):
            assert "SECURITY_HEADERS" in made, path
