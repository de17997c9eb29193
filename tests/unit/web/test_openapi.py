"""The OpenAPI document describes every route, and its references and examples hold."""

import json
from typing import Any
from urllib.parse import urljoin

import pytest

from ingest import openapi
from ingest.engagement import event_body
from ingest.web.validate import first_problem
from tests.support.template import resources


def test_the_description_has_every_route_of_the_template() -> None:
    routes = {each["Properties"]["RouteKey"] for each in resources("AWS::ApiGatewayV2::Route").values()}
    paths = openapi.document()["paths"]
    described = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    heads = {each.replace("GET ", "HEAD ") for each in described if each.startswith("GET ")}
    assert described | heads == routes


def operations() -> list[tuple[str, dict[str, Any]]]:
    paths = openapi.document()["paths"]
    return [(path, each) for path, methods in paths.items() for each in methods.values()]


def test_operations_have_ids_of_their_own() -> None:
    ids = [each["operationId"] for _, each in operations()]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(("path", "operation"), operations(), ids=lambda each: str(each)[:40])
def test_an_operation_describes_its_path_its_refusals_and_who_may_call(
    path: str, operation: dict[str, Any]
) -> None:
    in_path = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
    assert sorted(in_path) == sorted(part.strip("{}") for part in path.split("/") if part.startswith("{"))
    assert {"400", "401", "403", "404", "409", "413", "422", "429", "503"} <= set(operation["responses"])
    assert any(status.startswith("2") for status in operation["responses"])
    assert bool(operation["security"]) is (path not in {each.path for each in openapi.ROUTES if each.is_open})


def test_every_reference_in_the_description_leads_somewhere() -> None:
    document = openapi.document()
    text = json.dumps(document)
    names = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names == set(document["components"]["schemas"])


def test_who_sends_a_webhook_is_told_when_its_lead_becomes_visible() -> None:
    told = openapi.document()["paths"]["/v1/leads/events"]["post"]["description"]
    assert "will not be lost" in told
    assert "after a pause" in told
    assert "half a minute" in told


def test_the_description_s_own_example_is_valid() -> None:
    assert first_problem(event_body.EVENT, event_body.EVENT["example"]) is None


def test_a_reader_of_the_description_knows_where_calls_go() -> None:
    servers = [each["url"] for each in openapi.document()["servers"]]
    served_at = "https://abc.example.com/base/v1/openapi.json"
    assert urljoin(served_at, servers[0]) == "https://abc.example.com/base/"
    assert servers[1].endswith("/_aws/execute-api/{api}/$default"), "as local/cloud/deployment.py has it"
