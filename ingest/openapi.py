"""The OpenAPI document: made from the schemas that the handlers validate with."""

from typing import Any

from ingest.engagement import engagement_schemas
from ingest.leads import lead_schemas
from ingest.questions.question_routes import QUESTION_ROUTES
from ingest.questions.subscription_routes import SUBSCRIPTION_ROUTES
from rules.days import OTHER_REGION, REGIONS

USER = {
    "name": "user_id",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": engagement_schemas.USER_ID},
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
FINDING = ("organization_id", "integration", "external_event_id")
LEAD = {
    "name": "lead_id",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": lead_schemas.LEAD_ID},
}
CHANGE = {"name": "change", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 1}}
DATE = {"type": "string", "format": "date"}
FILE = {
    "name": "file",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": r"^[a-z]+\.[a-z]+$"},
}
MEDIA = {"type": "string"}


def _query(name: str, schema: dict[str, Any], required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": required, "schema": schema}


REGION = _query("region", {"type": "string", "enum": ["global", *REGIONS, OTHER_REGION]})
PAGE = [
    _query("from", {"type": "string"}),
    _query("to", {"type": "string"}),
    _query("limit", {"type": "integer", "minimum": 1, "maximum": 500}),
    _query("cursor", {"type": "string"}),
]
MEMORY = [_query("type", {"type": "string"}), _query("key", {"type": "string"})]
TOP = _query("limit", {"type": "integer", "minimum": 1, "maximum": 100})

# (method, path, what it does, parameters, body, success status, answer)
Route = tuple[
    str, str, str, list[dict[str, Any]], engagement_schemas.Schema | None, int, engagement_schemas.Schema
]
ROUTES: list[Route] = [
    (
        "post",
        "/v1/events",
        "Send 1 to 100 events",
        [],
        engagement_schemas.EVENTS,
        202,
        engagement_schemas.RESULTS,
    ),
    (
        "get",
        "/v1/users/{user_id}",
        "Profile",
        [USER, _query("as_of", DATE)],
        None,
        200,
        engagement_schemas.PROFILE,
    ),
    (
        "get",
        "/v1/users/{user_id}/events",
        "Events, newest first",
        [USER, *PAGE],
        None,
        200,
        engagement_schemas.ANY,
    ),
    (
        "get",
        "/v1/users/{user_id}/activity",
        "Active dates, newest first",
        [USER, *PAGE],
        None,
        200,
        engagement_schemas.ANY,
    ),
    (
        "get",
        "/v1/users/{user_id}/ledger",
        "Ledger entries, newest first",
        [USER, *PAGE],
        None,
        200,
        engagement_schemas.ANY,
    ),
    (
        *("get", "/v1/users/{user_id}/streak/explain", "Why a day counts or not"),
        *([USER, _query("date", DATE, required=True)], None, 200, engagement_schemas.ANY),
    ),
    (
        "post",
        "/v1/users/{user_id}/redemptions",
        "Spend points",
        [USER],
        engagement_schemas.REDEMPTION,
        201,
        engagement_schemas.ENTRY,
    ),
    (
        *("post", "/v1/users/{user_id}/redemptions/{entry_id}/reversal", "Undo a redemption"),
        *([USER, ENTRY_ID], None, 201, engagement_schemas.ENTRY),
    ),
    (
        "post",
        "/v1/users/{user_id}/freezes",
        "Get a freeze",
        [USER],
        engagement_schemas.FREEZE,
        201,
        engagement_schemas.ENTRY,
    ),
    (
        "post",
        "/v1/users/{user_id}/pauses",
        "Pause the streak",
        [USER],
        engagement_schemas.PAUSE,
        201,
        engagement_schemas.ANY,
    ),
    (
        "put",
        "/v1/users/{user_id}/timezone",
        "Set the zone",
        [USER],
        engagement_schemas.TIMEZONE,
        200,
        engagement_schemas.ANY,
    ),
    ("get", "/v1/leaderboards/{board}", "The best", [BOARD, REGION, TOP], None, 200, engagement_schemas.ANY),
    (
        *("get", "/v1/leaderboards/{board}/users/{user_id}", "A user's exact rank"),
        *([BOARD, USER, REGION], None, 200, engagement_schemas.ANY),
    ),
    (
        *("post", "/v1/leads/events", "Send an integration's webhook", []),
        *(lead_schemas.LEAD_EVENTS, 202, lead_schemas.RECEIPT),
    ),
    (
        *("get", "/v1/leads", "The lead that an integration's event was stored for"),
        *(
            [_query(name, {"type": "string"}, required=True) for name in FINDING],
            None,
            200,
            engagement_schemas.ANY,
        ),
    ),
    (
        *("get", "/v1/leads/{lead_id}/events", "A lead's events, newest first"),
        *([LEAD, *PAGE], None, 200, engagement_schemas.ANY),
    ),
    (
        *("get", "/v1/leads/{lead_id}/memory", "What is remembered of a lead"),
        *([LEAD, *MEMORY], None, 200, engagement_schemas.ANY),
    ),
    ("get", "/v1/leads/{lead_id}/features", "A lead's features", [LEAD], None, 200, engagement_schemas.ANY),
    (
        *("post", "/v1/leads/changes/{change}/reversal", "Undo a merge of leads", [CHANGE]),
        *(lead_schemas.REVERSAL, 202, engagement_schemas.ANY),
    ),
    *QUESTION_ROUTES,
    *SUBSCRIPTION_ROUTES,
    ("get", "/v1/operations", "The pipeline, live (admins)", [], None, 200, engagement_schemas.ANY),
    ("get", "/", "The web page", [], None, 200, MEDIA | {"contentMediaType": "text/html"}),
    ("get", "/app/{file}", "A file of the web page", [FILE], None, 200, MEDIA | {"contentMediaType": "*/*"}),
    ("get", "/v1/health", "Health", [], None, 200, engagement_schemas.ANY),
    ("get", "/v1/openapi.json", "This document", [], None, 200, engagement_schemas.ANY),
]
OPEN = frozenset({"/", "/app/{file}", "/v1/health", "/v1/openapi.json"})
# Sent again with the same body, these answer 200 with what there is.
REPEATED = frozenset({"/v1/questions", "/v1/subscriptions"})
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
    media = shape.get("contentMediaType", "application/json")
    success = {"description": summary, "content": {media: {"schema": shape}}}
    again = {"200": success} if method == "post" and path in REPEATED else {}
    operation: dict[str, Any] = {
        "operationId": f"{method}{name.replace('.', '')}",
        "summary": summary,
        "parameters": parameters,
        "responses": {**again, str(status): success, **refusals},
        "security": [] if path in OPEN else [{"bearer": []}],
    }
    if body is not None:
        content = {"application/json": {"schema": body}}
        operation["requestBody"] = {"required": bool(body["required"]), "content": content}
    return operation


def document() -> dict[str, Any]:
    """Return the OpenAPI 3.1 document."""
    events = engagement_schemas.EVENTS["properties"]["events"] | {
        "items": {"$ref": "#/components/schemas/Event"}
    }
    described = engagement_schemas.EVENTS | {"properties": {"events": events}}
    paths: dict[str, Any] = {}
    for route in ROUTES:
        shown = (*route[:4], described, *route[5:]) if route[4] is engagement_schemas.EVENTS else route
        paths.setdefault(route[1], {})[route[0]] = _operation(shown)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Streakline", "version": "1", "description": "Streaks, points and an exact ledger"},
        "paths": paths,
        "components": {
            "schemas": {"Error": engagement_schemas.ERROR, "Event": engagement_schemas.EVENT},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    }
