"""The HTTP API: routes, who may call them, and the functions that they lead to."""

import importlib
import json

import pytest

from ingest import openapi
from tests.support.declared import logical_ids, properties
from tests.support.template import resources, template

ROUTES = resources("AWS::ApiGatewayV2::Route")
GATEWAY_MS_MAX = 30_000  # what API Gateway allows an integration of an HTTP API
# A webhook has no token: its signature opens the door (tests/integration/test_hooks.py).
HOOK_ROUTES = {f"{method} /v1/hooks/{{organization}}/{{source}}" for method in ("POST", "GET", "OPTIONS")}
OPEN_ROUTES = {
    "GET /",
    "GET /app/{file}",
    "GET /v1/health",
    "GET /v1/docs",
    "GET /v1/openapi.json",
    *HOOK_ROUTES,
}


def get_of(key: str) -> str:
    """The route that answers a HEAD, or the route itself."""
    return key.replace("HEAD ", "GET ") if key.startswith("HEAD ") else key


def test_every_route_has_the_authorizer_but_health_and_the_description() -> None:
    for each in ROUTES.values():
        route = each["Properties"]
        if get_of(route["RouteKey"]) in OPEN_ROUTES:
            assert route["AuthorizationType"] == "NONE"
        else:
            assert route["AuthorizationType"] == "JWT"
            assert route["AuthorizerId"] == {"Ref": "Authorizer"}
        assert "$default" not in route["RouteKey"]
        assert "ANY" not in route["RouteKey"]
    authorizer = properties("Authorizer")
    assert authorizer["AuthorizerType"] == "JWT"
    assert authorizer["IdentitySource"] == ["$request.header.Authorization"]


@pytest.mark.parametrize("api", sorted({each.api for each in openapi.ROUTES}))
def test_each_route_is_one_of_the_function_that_the_template_calls(api: str) -> None:
    module = importlib.import_module(properties(f"{api}Function")["Handler"].rpartition(".")[0])
    routes = module.ROUTES if api == "Page" else module.app.routes
    assert routes
    assert [each for each in openapi.ROUTES if each.api == api] == sorted(
        routes, key=lambda each: (each.path, each.method)
    )


def test_each_route_of_the_template_leads_to_its_function() -> None:
    api_of = {each.key: each.api for each in openapi.ROUTES}
    for each in ROUTES.values():
        (integration,) = logical_ids(each["Properties"]["Target"])
        (function,) = logical_ids(properties(integration)["IntegrationUri"])
        assert function == f"{api_of[get_of(each['Properties']['RouteKey'])]}Function"


def test_the_routes_of_the_template_are_those_that_are_described() -> None:
    all_keys = [each["Properties"]["RouteKey"] for each in ROUTES.values()]
    keys = [each for each in all_keys if not each.startswith("HEAD ")]
    heads = [get_of(each) for each in all_keys if each.startswith("HEAD ")]
    assert sorted(heads) == [each for each in sorted(keys) if each.startswith("GET ")]
    described = [each.key for each in openapi.ROUTES]
    assert sorted(keys) == sorted(set(described)) == sorted(described), "each is declared once"
    names = [each.name for each in openapi.ROUTES]
    assert len(names) == len(set(names)), "two handlers have one name, and would be one resource"
    assert {each.key for each in openapi.ROUTES if each.is_open} == OPEN_ROUTES


def test_the_gateway_may_invoke_what_it_leads_to_and_waits_longer_than_it_runs() -> None:
    permitted = {
        name
        for each in resources("AWS::Lambda::Permission").values()
        for name in logical_ids(each["Properties"]["FunctionName"])
    }
    for integration in resources("AWS::ApiGatewayV2::Integration").values():
        (function,) = logical_ids(integration["Properties"]["IntegrationUri"])
        assert function in permitted
        assert integration["Properties"]["PayloadFormatVersion"] == "2.0"
        wait_ms = integration["Properties"]["TimeoutInMillis"]
        assert 1000 * properties(function)["Timeout"] < wait_ms <= GATEWAY_MS_MAX


def test_the_api_is_throttled_and_logs_what_was_asked() -> None:
    stage = properties("ApiStage")
    whole = stage["DefaultRouteSettings"]["ThrottlingRateLimit"]
    assert whole > 0
    condition, settings, _ = stage["RouteSettings"]["Fn::If"]
    assert condition == "HasLeads"
    assert settings.keys() == HOOK_ROUTES, "strangers take no more than a share"
    assert all(0 < each["ThrottlingRateLimit"] <= whole / 10 for each in settings.values())
    needed = {name for name, each in ROUTES.items() if each["Properties"]["RouteKey"] in HOOK_ROUTES}
    _, after, _ = template()["Resources"]["ApiStage"]["Metadata"]["After"]["Fn::If"]
    assert {each["Ref"] for each in after} == needed, "AWS wants the routes first"
    logged = json.loads(stage["AccessLogSettings"]["Format"])
    assert {"route", "status"} <= set(logged)
    assert "claims" not in str(logged), "nobody is named (rule 10)"
