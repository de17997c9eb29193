"""Builds the OpenAPI document from the declarations of the routes, which the doors validate with."""

import re
from typing import Any

from ingest import endpoints_api, operations_api, page, privacy_api, rules_api
from ingest.engagement import events_api, users_api
from ingest.engagement.event_body import EVENT
from ingest.web.json_schema import ERROR, Schema
from ingest.web.part_routes import PartRoutes
from ingest.web.routes import Route
from rules.book.book_schema import BOOK
from rules.parts import OF_PART, said

HANDLERS = (*(events_api, users_api, rules_api, endpoints_api, privacy_api, operations_api),)
PARTS: list[PartRoutes] = list(said("routes"))
# By path, wherever a handler stands: so moving one changes neither the document nor the template.
ROUTES: list[Route] = sorted(
    (
        *(route for handler in HANDLERS for route in handler.app.routes),
        *(route for part in PARTS for app in part.apps() for route in app.routes),
        *page.ROUTES,
    ),
    key=lambda route: (route.path, route.method),
)
# Which part of the API an operation belongs to, in the order of the reference.
TAGS = (
    *("Events", "Streaks and profile", "Leaderboards", "Points and rewards"),
    *(part.tag for part in PARTS),
    *("Outgoing webhooks", "Export and erasure", "Administration", "Service"),
)
# The first pattern that matches `METHOD /path` says its tag.
TAG_PATTERNS = (
    (r"DELETE /v1/(users|leads)/[^/]+$|.*/export$|.*/lift$|.* /v1/erasures/.*", "Export and erasure"),
    (r".* /v1/events$", "Events"),
    *((part.paths, part.tag) for part in PARTS),
    (r".*/(balance|ledger|holds|redemptions|clawbacks|rewards)\b.*", "Points and rewards"),
    (r".* /v1/leaderboards/.*|.* /v1/boards\b.*|.*/(alias|boards|groups)$", "Leaderboards"),
    (r".* /v1/users/.*", "Streaks and profile"),
    (r".* /v1/webhook-endpoints\b.*", "Outgoing webhooks"),
    (r".* /v1/(rules|review|amnesties|operations)\b.*", "Administration"),
    (r".*", "Service"),
)
# Where calls go: to the deployment that served the document, or to a laptop cloud.
SERVERS = (
    {"url": "..", "description": "the deployment that this document comes from"},
    {
        "url": "http://127.0.0.1:{port}/_aws/execute-api/{api}/$default",
        "description": "a laptop cloud: `api_url` in .local/stack.json",
        "variables": {"port": {"default": "4566"}, "api": {"default": "api"}},
    },
)
REFUSALS = {
    "400": "a malformed request",
    "401": "no valid token",
    "403": "not the caller's own data",
    "404": "there is no such thing",
    "409": "refused by a rule: the code says which",
    "410": "the person was erased",
    "413": "too large",
    "415": "a compressed body, or one of another type",
    "422": "a field is invalid: details name it",
    "429": "too many calls or events: `Retry-After` says in how many seconds to call again",
    "503": "try again",
}


def document() -> dict[str, Any]:
    """Return the OpenAPI 3.1 document."""
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Streakline", "version": "1", "description": "Streaks, points and an exact ledger"},
        "servers": list(SERVERS),
        "tags": [{"name": tag} for tag in TAGS],
        "paths": paths,
        "components": {
            "schemas": {"Error": ERROR, "Event": EVENT, "Book": BOOK},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    name = "".join(part.strip("{}").title().replace("_", "") for part in route.path.split("/")[2:])
    refusals = {
        code: {
            "description": reason,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        }
        for code, reason in REFUSALS.items()
    }
    success = _success(route.summary, route.answer)
    again = {"200": success} if route.may_repeat else {}
    if route.waited:
        again = {"200": _success(f"{route.summary}, and wait for what comes of it", route.waited)}
    operation: dict[str, Any] = {
        "operationId": f"{route.method}{name.replace('.', '')}",
        "tags": [tag_of(route.method, route.path)],
        "summary": route.summary,
        **({"description": route.description} if route.description else {}),
        "parameters": list(route.parameters),
        "responses": {**again, str(route.status): success, **refusals},
        "security": [] if route.is_open else [{"bearer": []}],
        **({OF_PART: route.part.value} if route.part else {}),
    }
    if route.body is not None:
        content = {"application/json": {"schema": route.body}}
        operation["requestBody"] = {"required": bool(route.body["required"]), "content": content}
    return operation


def _success(description: str, answer: Schema) -> dict[str, Any]:
    media = answer.get("contentMediaType", "application/json")
    return {"description": description, "content": {media: {"schema": answer}}}


def tag_of(method: str, path: str) -> str:
    """Return the tag of an operation: one of TAGS."""
    return next(tag for pattern, tag in TAG_PATTERNS if re.fullmatch(pattern, f"{method.upper()} {path}"))
