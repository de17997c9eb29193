"""The bodies and answers of /v1/webhook-endpoints, as JSON Schema, and its routes (admins)."""

from ingest.leads.lead_schemas import ORGANIZATION
from ingest.web.json_schema import ANY, USER_ID, Schema, closed_object
from ingest.web.routes import Route, in_path, matching
from rules.outgoing.notices import NoticeType

ENDPOINTS_API = "EndpointsApi"
ENDPOINTS = "/v1/webhook-endpoints"
ONE = f"{ENDPOINTS}/{{endpoint_id}}"
ENDPOINT_ID = r"^[a-z0-9]{26}$"
_ID = in_path("endpoint_id", matching(ENDPOINT_ID))
KINDS = sorted(each.value for each in NoticeType if each is not NoticeType.TEST)
_VALUE: Schema = {
    "anyOf": [
        {"type": ["string", "number", "boolean"]},
        closed_object(["at_least"], {"at_least": {"type": "number"}}),
    ]
}
_FIELDS: Schema = {
    "type": "object",
    "maxProperties": 10,
    "additionalProperties": {"type": "array", "minItems": 1, "maxItems": 20, "items": _VALUE},
}
_OF_ENDPOINT: dict[str, Schema] = {
    "organization_id": matching(ORGANIZATION),
    "url": {"type": "string", "maxLength": 1000, "description": "https, at a public address"},
    "types": {
        "type": "array",
        "maxItems": len(KINDS),
        "items": {"type": "string", "enum": KINDS},
        "description": "of notifications; left out or empty: all of them",
    },
    "filters": {
        **closed_object([], dict.fromkeys(KINDS, _FIELDS)),
        "description": "by type: what fields of `data` must be: one of some values, or a number at least",
    },
    "agents": {
        "type": "array",
        "maxItems": 20,
        "items": matching(USER_ID),
        "description": "whose questions it is told of (question.closed); left out or empty: nobody's",
    },
    "description": {"type": "string", "maxLength": 200},
}
NEW_ENDPOINT = closed_object(["organization_id", "url"], _OF_ENDPOINT)
_TOLD: dict[str, Schema] = {
    "endpoint_id": matching(ENDPOINT_ID),
    **_OF_ENDPOINT,
    "created_at": {"type": "string", "format": "date-time"},
    "disabled": {"type": "string", "description": "why nothing is sent; empty while it is"},
}
ENDPOINT = closed_object(sorted(_TOLD), _TOLD)
SECRET: Schema = {"type": "string", "description": "it is shown this once"}
MADE = closed_object([*ENDPOINT["required"], "secret"], {**_TOLD, "secret": SECRET})
ROTATION = closed_object(
    [], {"overlap_hours": {"type": "integer", "minimum": 0, "maximum": 168, "description": "24, if left out"}}
)
ROTATED = closed_object(
    ["secret", "former_until"],
    {"secret": SECRET, "former_until": {"type": "string", "description": "until then both sign"}},
)
LISTED = closed_object(["endpoints"], {"endpoints": {"type": "array", "items": ENDPOINT}})
TESTED = closed_object(["message_id"], {"message_id": {"type": "string"}})
EMPTY = closed_object([], {})

ENDPOINT_ROUTES = [
    Route(
        "PostEndpoint",
        ENDPOINTS_API,
        "post",
        ENDPOINTS,
        "Register an endpoint for outgoing webhooks (admins)",
        body=NEW_ENDPOINT,
        status=201,
        answer=MADE,
        description="Messages are signed as Standard Webhooks say. Every function knows it within a minute.",
    ),
    Route("GetEndpoints", ENDPOINTS_API, "get", ENDPOINTS, "All endpoints (admins)", answer=LISTED),
    Route("DeleteEndpoint", ENDPOINTS_API, "delete", ONE, "End an endpoint (admins)", [_ID], answer=ANY),
    Route(
        "PostEndpointSecret",
        ENDPOINTS_API,
        "post",
        f"{ONE}/secret",
        "Rotate an endpoint's secret: for a while both sign (admins)",
        [_ID],
        body=ROTATION,
        answer=ROTATED,
    ),
    Route(
        "PostEndpointTest",
        ENDPOINTS_API,
        "post",
        f"{ONE}/test",
        "Send an endpoint a test message (admins)",
        [_ID],
        body=EMPTY,
        status=202,
        answer=TESTED,
    ),
    Route(
        "PostEndpointEnable",
        ENDPOINTS_API,
        "post",
        f"{ONE}/enable",
        "Send to an endpoint again that had answered 410 Gone (admins)",
        [_ID],
        body=EMPTY,
        answer=ENDPOINT,
    ),
]
