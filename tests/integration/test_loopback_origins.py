"""Pages of this machine may call an API of the emulator, from any port; pages of others may not."""

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from local.cloud.laptop_cloud import cors_of_pages
from tests.support.chromium import CHROMIUM, FLAGS
from tests.support.chromium_tabs import app_server
from tests.support.dynamodb_engine import Engine, served
from tests.support.template import ROOT

LOOPBACK = (
    *("http://localhost", "https://localhost:443", "http://app.localhost:8080"),
    *("http://127.0.0.1:3000", "http://127.1.2.3:1", "http://[::1]:4321"),
)
OTHERS = (
    *("http://localhost.example.com", "null", "", "http://127.0.0.1.example.com", "http://evil-localhost"),
    *("http://192.168.0.7:5173", "http://[::2]", "http://localhost:5173@example.com", "http://127.0.0.1:"),
    *("http://localhost:5173, https://example.com", "http://localhost:1234567"),
)
ALLOWED = cors_of_pages((ROOT / "template.yaml").read_text())


@pytest.fixture(scope="module")
def api() -> Iterator[str]:
    """An HTTP API without routes: it answers 404."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOPBACK_CORS", json.dumps(ALLOWED))
        with served() as endpoint:
            made = Engine(endpoint, "").client("apigatewayv2").create_api(Name="a", ProtocolType="HTTP")
            yield f"{endpoint}/_aws/execute-api/{made['ApiId']}/$default"


def ask(url: str, method: str, origin: str, **headers: str) -> tuple[int, dict[str, str]]:
    target = urlsplit(url)
    line = http.client.HTTPConnection(target.netloc, timeout=30)
    line.request(method, target.path, headers={"Origin": origin, **headers})
    answer = line.getresponse()
    answer.read()
    line.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}


def preflight(url: str, origin: str) -> tuple[int, dict[str, str]]:
    headers = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    return ask(url, "OPTIONS", origin, **headers)


@pytest.mark.parametrize("origin", LOOPBACK)
def test_a_page_of_this_machine_may_call(api: str, origin: str) -> None:
    status, headers = preflight(f"{api}/v1/events", origin)
    assert (status, headers["access-control-allow-origin"]) == (204, origin)
    assert {"authorization", "content-type", "streakline-device"} <= set(
        headers["access-control-allow-headers"].split(",")
    )
    assert "POST" in headers["access-control-allow-methods"].split(",")
    status, headers = ask(f"{api}/v1/users/ann", "GET", origin)
    assert (status, headers["access-control-allow-origin"]) == (404, origin)
    assert set(headers["access-control-expose-headers"].split(",")) >= {
        "date",
        "retry-after",
        "www-authenticate",
    }
    assert "origin" in headers["vary"].lower()


def by_its_name(api: str) -> tuple[str, str]:
    """The API's address at the emulator, and its name, as the stack's output ApiUrl has it."""
    target, name = urlsplit(api), api.split("/")[-2]
    return f"http://{target.netloc}", f"{name}.execute-api.localhost:{target.port}"


@pytest.mark.parametrize("origin", LOOPBACK)
def test_it_may_call_the_api_by_its_name_too(api: str, origin: str) -> None:
    address, name = by_its_name(api)
    asked = {"Host": name, "Access-Control-Request-Method": "POST"}
    status, headers = ask(f"{address}/v1/events", "OPTIONS", origin, **asked)
    assert (status, headers["access-control-allow-origin"]) == (204, origin)
    status, headers = ask(f"{address}/v1/users/ann", "GET", origin, Host=name)
    assert (status, headers["access-control-allow-origin"]) == (404, origin)


@pytest.mark.parametrize("origin", OTHERS)
def test_a_page_of_somebody_else_may_not_by_its_name_either(api: str, origin: str) -> None:
    address, name = by_its_name(api)
    for method in ("OPTIONS", "GET"):
        asked = {"Host": name, "Access-Control-Request-Method": "POST"}
        assert "access-control-allow-origin" not in ask(f"{address}/v1/events", method, origin, **asked)[1]


@pytest.mark.parametrize("origin", OTHERS)
def test_a_page_of_somebody_else_may_not(api: str, origin: str) -> None:
    status, headers = preflight(f"{api}/v1/events", origin)
    assert (status, "access-control-allow-origin" in headers) == (403, False)
    _, headers = ask(f"{api}/v1/users/ann", "GET", origin)
    assert "access-control-allow-origin" not in headers


ASK = """async (url) => {
  const headers = { authorization: "Bearer t", "content-type": "application/json", "streakline-device": "d" };
  try {
    const answer = await fetch(url, { method: "POST", headers, body: "{}" });
    return [answer.status, answer.headers.get("date") !== null];
  } catch (error) {
    return [error.name];
  }
}"""


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("app.localhost", [404, True]),
        ("localhost.example.com", ["TypeError"]),
    ],
)
def test_chromium_goes_by_it(api: str, browser: Any, host: str, told: list[Any]) -> None:
    """All of these names are this machine, and the browser asks first: the request has headers of its own."""
    rules = "--host-resolver-rules=MAP *.example.com 127.0.0.1"
    there = browser.browser_type.launch(executable_path=CHROMIUM, args=[*FLAGS, rules])
    with app_server("127.0.0.1", "<!doctype html>") as address:
        page = there.new_page()
        page.goto(address.replace("127.0.0.1", host))
        assert page.evaluate(ASK, f"{api}/v1/events") == told
    there.close()


def test_on_aws_no_origin_is_allowed_that_nobody_has_named() -> None:
    assert "AllowOrigins" not in ALLOWED
    assert (
        'AllowedOrigins:\n    Type: CommaDelimitedList\n    Default: ""'
        in (ROOT / "template.yaml").read_text()
    )
