"""The OpenAPI document: made from the schemas that the handlers validate with."""

from typing import Any

from ingest import schemas
from rules.days import OTHER_REGION, REGIONS

USER = {
    "name": "user_id",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": schemas.USER_ID},
}
BOARD = {
    "name": "board",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "enum": ["streaks", "points"]},
}
ENTRY_ID = {
    "name": "entry_id",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": "^[0-9]{8}T[0-9]{12}Z$"},
}
DATE = {"type": "string", "format": "date"}


def _query(name: str, schema: dict[str, Any], required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": required, "schema": schema}


REGION = _query("region", {"type": "string", "enum": ["global", *REGIONS, OTHER_REGION]})
PAGE = [
    _query("from", {"type": "string"}),
    _query("to", {"type": "string"}),
    _query("limit", {"type": "integer", "minimum": 1, "maximum": 500}),
    _query("cursor", {"type": "string"}),
]
TOP = _query("limit", {"type": "integer", "minimum": 1, "maximum": 100})

# (method, path, what it does, parameters, body, success status, answer)
Route = tuple[str, str, str, list[dict[str, Any]], schemas.Schema | None, int, schemas.Schema]
ROUTES: list[Route] = [
    ("post", "/v1/events", "Send 1 to 100 events", [], schemas.EVENTS, 202, schemas.RESULTS),
    ("get", "/v1/users/{user_id}", "Profile", [USER, _query("as_of", DATE)], None, 200, schemas.PROFILE),
    ("get", "/v1/users/{user_id}/events", "Events, newest first", [USER, *PAGE], None, 200, schemas.ANY),
    (
        "get",
        "/v1/users/{user_id}/activity",
        "Active dates, newest first",
        [USER, *PAGE],
        None,
        200,
        schemas.ANY,
    ),
    (
        "get",
        "/v1/users/{user_id}/ledger",
        "Ledger entries, newest first",
        [USER, *PAGE],
        None,
        200,
        schemas.ANY,
    ),
    (
        *("get", "/v1/users/{user_id}/streak/explain", "Why a day counts or not"),
        *([USER, _query("date", DATE, required=True)], None, 200, schemas.ANY),
    ),
    (
        "post",
        "/v1/users/{user_id}/redemptions",
        "Spend points",
        [USER],
        schemas.REDEMPTION,
        201,
        schemas.ENTRY,
    ),
    (
        *("post", "/v1/users/{user_id}/redemptions/{entry_id}/reversal", "Undo a redemption"),
        *([USER, ENTRY_ID], None, 201, schemas.ENTRY),
    ),
    ("post", "/v1/users/{user_id}/freezes", "Get a freeze", [USER], schemas.FREEZE, 201, schemas.ENTRY),
    ("post", "/v1/users/{user_id}/pauses", "Pause the streak", [USER], schemas.PAUSE, 201, schemas.ANY),
    ("put", "/v1/users/{user_id}/timezone", "Set the zone", [USER], schemas.TIMEZONE, 200, schemas.ANY),
    ("get", "/v1/leaderboards/{board}", "The best", [BOARD, REGION, TOP], None, 200, schemas.ANY),
    (
        *("get", "/v1/leaderboards/{board}/users/{user_id}", "A user's exact rank"),
        *([BOARD, USER, REGION], None, 200, schemas.ANY),
    ),
    ("get", "/v1/health", "Health", [], None, 200, schemas.ANY),
    ("get", "/v1/openapi.json", "This document", [], None, 200, schemas.ANY),
]
OPEN = frozenset({"/v1/health", "/v1/openapi.json"})
REFUSALS = {
    "400": "a malformed request",
    "401": "no valid token",
    "403": "not the caller's own data",
    "404": "there is no such thing",
    "409": "refused by a rule: the code says which",
    "413": "too large",
    "422": "a field is invalid: details name it",
    "429": "too many events a minute",
    "503": "try again",
}


def _operation(route: Route) -> dict[str, Any]:
    method, path, summary, parameters, body, status, shape = route
    name = "".join(part.strip("{}").title().replace("_", "") for part in path.split("/")[2:])
    refusals = {
        code: {
            "description": reason,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        }
        for code, reason in REFUSALS.items()
    }
    success = {"description": summary, "content": {"application/json": {"schema": shape}}}
    operation: dict[str, Any] = {
        "operationId": f"{method}{name.replace('.', '')}",
        "summary": summary,
        "parameters": parameters,
        "responses": {str(status): success, **refusals},
        "security": [] if path in OPEN else [{"bearer": []}],
    }
    if body is not None:
        content = {"application/json": {"schema": body}}
        operation["requestBody"] = {"required": bool(body["required"]), "content": content}
    return operation


def document() -> dict[str, Any]:
    """Return the OpenAPI 3.1 document."""
    events = schemas.EVENTS["properties"]["events"] | {"items": {"$ref": "#/components/schemas/Event"}}
    described = schemas.EVENTS | {"properties": {"events": events}}
    paths: dict[str, Any] = {}
    for route in ROUTES:
        shown = (*route[:4], described, *route[5:]) if route[4] is schemas.EVENTS else route
        paths.setdefault(route[1], {})[route[0]] = _operation(shown)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Streakline", "version": "1", "description": "Streaks, points and an exact ledger"},
        "paths": paths,
        "components": {
            "schemas": {"Error": schemas.ERROR, "Event": schemas.EVENT},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    }
