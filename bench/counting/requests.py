"""Events as API Gateway and SQS hand them to a function."""

import json
from collections.abc import Iterable
from typing import Any

USER = "user"
ADMIN, AGENTS, LEADS = "[streakline/admin]", "[streakline/agents]", "[streakline/leads/acme]"
FULFILMENT = "[streakline/fulfilment]"


def http(method: str, path: str, body: Any = None, *, sub: str = USER, groups: str = "") -> dict[str, Any]:
    """Return a request to the HTTP API, payload format 2.0."""
    return {
        "version": "2.0",
        "routeKey": f"{method} {path}",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json"},
        "requestContext": {
            "http": {"method": method, "path": path, "sourceIp": "192.0.2.1"},
            "stage": "$default",
            "authorizer": {"jwt": {"claims": {"sub": sub, "cognito:groups": groups}, "scopes": None}},
        },
        "body": None if body is None else json.dumps(body),
        "isBase64Encoded": False,
    }


def queue(bodies: Iterable[str]) -> dict[str, Any]:
    """Return a batch of an SQS queue."""
    return {"Records": [{"messageId": str(at), "body": body} for at, body in enumerate(bodies)]}
