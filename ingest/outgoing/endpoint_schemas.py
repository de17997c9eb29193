"""The bodies and answers of /v1/webhook-endpoints, as JSON Schema."""

from ingest.leads.lead_schemas import ORGANIZATION
from ingest.web.json_schema import USER_ID, Schema, closed_object
from ingest.web.routes import matching
from rules.outgoing.notices import NoticeType

ENDPOINT_ID = r"^[a-z0-9]{26}$"
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
