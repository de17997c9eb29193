"""What API Gateway does, in the process: a request becomes an event (payload format 2.0) for the real handler."""

import base64
import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from aws_lambda_powertools.event_handler.api_gateway import BaseRouter

from ingest.openapi import ROUTES
from ingest.web.api import Api
from ingest.web.routes import Route
from tests.support.one_process import ONE_PROCESS

CONTEXT = SimpleNamespace(
    function_name="f", memory_limit_in_mb=128, invoked_function_arn="arn", aws_request_id="1"
)
# The first that fits; as in the template, where a test holds every route to its function.
FUNCTIONS = (
    (r"/|/app/.*|/v1/docs", "ingest.page"),
    (r"/v1/(operations|health|openapi.json)", "ingest.operations_api"),
    (r"GET /v1/questions/[^/]+/responses", "ingest.questions.polls_api"),
    (r"/v1/(questions|agents|subscriptions|stats)(/.*)?", "ingest.questions.questions_api"),
    (r"DELETE /v1/users/[^/]+", "ingest.privacy_api"),
    (r"/v1/users/[^/]+/(export|lift)", "ingest.privacy_api"),
    (r"/v1/erasures/[^/]+", "ingest.privacy_api"),
    (r"/v1/users/[^/]+/answers", "ingest.questions.questions_api"),
    (r"/v1/events", "ingest.engagement.events_api"),
    (r"/v1/rules(/.*)?", "ingest.rules_api"),
    (r"/v1/.*", "ingest.engagement.users_api"),
)
GROUP_ADMIN, GROUP_AGENTS = "streakline/admin", "streakline/agents"
CLOSED = threading.Event()


class Left(Exception):
    """Nobody waits for this request any more."""


def pause(seconds: float) -> None:
    """A handler's own pause: meanwhile others may run, as other processes would. Raises Left at the end."""
    ONE_PROCESS.wait(seconds)
    if CLOSED.is_set():
        raise Left


@dataclass(frozen=True)
class Answered:
    status: int
    headers: dict[str, str]
    body: bytes


def token(sub: str, *groups: str, lifetime_seconds: int = 3600) -> str:
    """A token that nobody signed: this gateway believes it, a real one would not."""
    claims = {"sub": sub, "cognito:groups": list(groups), "exp": int(time.time()) + lifetime_seconds}
    parts = [json.dumps(each).encode() for each in ({"alg": "none"}, claims)]
    return ".".join([*(base64.urlsafe_b64encode(each).decode().rstrip("=") for each in parts), ""])


def claims_of(authorization: str) -> dict[str, Any] | None:
    """The claims of a bearer token; None without one, or past its time."""
    try:
        text = authorization.removeprefix("Bearer ").split(".")[1]
        claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (IndexError, ValueError):
        return None
    return claims if claims.get("exp", 0) > time.time() else None


def ask(method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> Answered:
    """Route, authorize, call the handler, and undo its encoding."""
    url = urlsplit(target)
    path = re.sub("%(?!25)[0-9A-Fa-f]{2}", lambda encoded: unquote(encoded[0]), url.path)
    found = _route(method, path)
    if found is None:
        return _refusal(404, "Not Found")
    route, parameters = found
    given = {name.lower(): value for name, value in headers.items()}
    claims = claims_of(given.get("authorization", ""))
    if not route.is_open and claims is None:
        return _refusal(401, "Unauthorized")
    event = {
        "version": "2.0",
        "routeKey": route.key,
        "rawPath": path,
        "rawQueryString": url.query,
        "headers": given,
        "queryStringParameters": dict(parse_qsl(url.query)) or None,
        "pathParameters": parameters or None,
        "requestContext": {
            "authorizer": {"jwt": {"claims": _as_text(claims or {}), "scopes": None}},
            "http": {"method": method, "path": path, "sourceIp": "192.0.2.1"},
            "stage": "$default",
        },
        "body": body.decode() if body else None,
        "isBase64Encoded": False,
    }
    module = _module(method, path)
    with ONE_PROCESS.request(lambda: _kept(module)):
        answered = module.handler(event, CONTEXT)
    text = answered.get("body") or ""
    shown = base64.b64decode(text) if answered.get("isBase64Encoded") else text.encode()
    several = {name: ", ".join(values) for name, values in (answered.get("multiValueHeaders") or {}).items()}
    return Answered(answered["statusCode"], {**several, **(answered.get("headers") or {})}, shown)


def _as_text(claims: Mapping[str, Any]) -> dict[str, str]:
    """An HTTP API hands every claim over as text; a list as "[a b]"."""
    return {
        name: f"[{' '.join(value)}]" if isinstance(value, list) else str(value)
        for name, value in claims.items()
    }


def _route(method: str, path: str) -> tuple[Route, dict[str, str]] | None:
    for route in ROUTES:
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(route.path))
        is_asked = route.method == {"HEAD": "get"}.get(method, method.lower())
        match = re.fullmatch(pattern, path) if is_asked else None
        if match:
            return route, match.groupdict()
    return None


def _module(method: str, path: str) -> Any:
    asked = {path, f"{method.upper()} {path}"}
    return import_module(
        next(name for pattern, name in FUNCTIONS if any(re.fullmatch(pattern, each) for each in asked))
    )


def _kept(module: Any) -> Callable[[], None]:
    """Take down what routers keep of a request in globals; returns what puts it back."""
    routers = [each._router for each in vars(module).values() if isinstance(each, Api)]
    kept = [(router, router.current_event, dict(router.context)) for router in routers]

    def put_back() -> None:
        for router, event, context in kept:
            BaseRouter.current_event = event
            router.context.clear()
            router.context.update(context)

    return put_back


def _refusal(status: int, message: str) -> Answered:
    return Answered(status, {"content-type": "application/json"}, json.dumps({"message": message}).encode())
