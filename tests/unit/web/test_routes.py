"""One declaration of a route registers its handler and describes it."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ingest.web.api import Answer, Api, json_response
from ingest.web.json_schema import closed_object, text
from ingest.web.routes import Route, in_query
from tests.support.http_requests import called

CUP = closed_object({"size": {"type": "integer"}, "colour?": {"type": "string"}})
SAUCER, SPAN = closed_object({"colour?": {"type": "string"}}), in_query("from", {"type": "string"})


@pytest.fixture
def api() -> Api:
    app = Api("ShopApi", {"cup_id": text(pattern="^[0-9]+$")})

    @app.route("POST /v1/cups/{cup_id}", [SPAN], body=CUP, status=201, answer=CUP, more="Each once.")
    def post_cup(cup_id: str) -> Answer:
        """Make a cup.

        Of clay, and
        in any colour.
        """
        app.check_path("cup_id", cup_id)
        body = app.body()
        time.sleep(0.01)
        return json_response(200, {"again": True}) if cup_id == "2" else {"made": cup_id, **body}

    @app.route("POST /v1/saucers", body=SAUCER)
    def post_saucer() -> dict[str, Any]:
        """Make a saucer."""
        time.sleep(0.01)
        return app.body()

    return app


def post(app: Api, path: str, body: str | None) -> tuple[int, Any]:
    answered = called(app.handler, "POST", path, body=body)
    return answered["statusCode"], json.loads(answered["body"])


def test_a_declaration_says_all_of_a_route(api: Api) -> None:
    cup_id = {"name": "cup_id", "in": "path", "required": True, "schema": text(pattern="^[0-9]+$")}
    description = "Of clay, and in any colour. Each once."
    assert api.routes[0] == Route(
        *("PostCup", "ShopApi", "POST /v1/cups/{cup_id}", "Make a cup", [cup_id, SPAN], CUP, 201, CUP),
        description=description,
    )
    assert (api.routes[0].method, api.routes[0].path) == ("post", "/v1/cups/{cup_id}")
    assert api.routes[1].description == ""


def test_a_part_of_a_path_without_a_schema_is_no_route(api: Api) -> None:
    with pytest.raises(KeyError, match="plate_id"):
        api.route("GET /v1/plates/{plate_id}")(lambda plate_id: {"plate": plate_id})


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/v1/cups/1", '{"size": 3}', 201, ""),
        ("/v1/cups/2", '{"size": 3}', 200, ""),
        ("/v1/cups/x", '{"size": 3}', 400, "invalid_parameter"),
        ("/v1/cups/1", '{"size": "3"}', 422, "invalid_field"),
        ("/v1/cups/1", '{"size": 3, "more": 1}', 422, "invalid_field"),
        ("/v1/cups/1", None, 400, "invalid_json"),
        ("/v1/saucers", None, 200, ""),
        ("/v1/saucers", "", 200, ""),
        ("/v1/saucers", "{", 400, "invalid_json"),
        ("/v1/saucers", '{"size": 3}', 422, "invalid_field"),
        ("/v1/plates", "{}", 404, "not_found"),
    ],
)
def test_a_handler_answers_by_its_declaration(
    api: Api, path: str, body: str | None, status: int, code: str
) -> None:
    answered = post(api, path, body)
    assert answered[0] == status
    assert answered[1].get("error", {}).get("code", "") == code


def test_each_thread_has_its_own_route_s_body(api: Api) -> None:
    """Powertools itself keeps one request for all: here all of a path's are alike."""
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: post(api, "/v1/saucers", '{"colour": "red"}'), range(24)))
    assert found == [(200, {"colour": "red"})] * 24
