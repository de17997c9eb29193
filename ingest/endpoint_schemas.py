"""The bodies and answers of /v1/webhook-endpoints, as JSON Schema."""

from ingest.leads.lead_schemas import ORGANIZATION
from ingest.web.json_schema import INSTANT, TEXT, USER_ID, Schema, closed_object, list_of
from ingest.web.routes import text_matching
from rules.outgoing.notices import NoticeType

ENDPOINT_ID = r"^[a-z0-9]{26}$"
KINDS = sorted(each.value for each in NoticeType if each is not NoticeType.TEST)
_VALUE: Schema = {
    "anyOf": [{"type": ["string", "number", "boolean"]}, closed_object({"at_least": {"type": "number"}})]
}
_FIELDS: Schema = {
    "type": "object",
    "maxProperties": 10,
    "additionalProperties": {"type": "array", "minItems": 1, "maxItems": 20, "items": _VALUE},
}
_NEW_ENDPOINT_FIELDS: dict[str, Schema] = {
    "organization_id": text_matching(ORGANIZATION),
    "url": {"type": "string", "maxLength": 1000, "description": "https, at a public address"},
    "types?": {
        "type": "array",
        "maxItems": len(KINDS),
        "items": {"type": "string", "enum": KINDS},
        "description": "of notifications; left out or empty: all of them",
    },
    "filters?": {
        **closed_object(dict.fromkeys([f"{each}?" for each in KINDS], _FIELDS)),
        "description": "by type: what fields of `data` must be: one of some values, or a number at least",
    },
    "agents?": {
        "type": "array",
        "maxItems": 20,
        "items": text_matching(USER_ID),
        "description": "whose questions it is told of (question.closed); left out or empty: nobody's",
    },
    "description?": {"type": "string", "maxLength": 200},
}
NEW_ENDPOINT = closed_object(_NEW_ENDPOINT_FIELDS)
_ENDPOINT_FIELDS: dict[str, Schema] = dict(
    sorted(
        {
            "endpoint_id": text_matching(ENDPOINT_ID),
            **{name.removesuffix("?"): each for name, each in _NEW_ENDPOINT_FIELDS.items()},
            "created_at": INSTANT,
            "disabled": {"type": "string", "description": "why nothing is sent; empty while it is"},
        }.items()
    )
)
ENDPOINT = closed_object(_ENDPOINT_FIELDS)
SECRET: Schema = {"type": "string", "description": "it is shown this once"}
CREATED_ENDPOINT = closed_object({**_ENDPOINT_FIELDS, "secret": SECRET})
ROTATION = closed_object(
    {"overlap_hours?": {"type": "integer", "minimum": 0, "maximum": 168, "description": "24, if left out"}}
)
ROTATED_SECRET = closed_object(
    {"secret": SECRET, "former_until": {"type": "string", "description": "until then both sign"}}
)
ENDPOINT_LIST = closed_object({"endpoints": list_of(ENDPOINT)})
TEST_RESULT = closed_object({"message_id": TEXT})
EMPTY = closed_object({})
