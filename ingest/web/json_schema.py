"""What the bodies of all routes share: the type of a JSON Schema, common patterns, the error body."""

from collections.abc import Mapping
from typing import Any

from ingest.web.error_codes import CODES

Schema = dict[str, Any]

# What issuers put into `sub`: auth0|5f7c8ec7, google-oauth2|103547991597142817347, a UUID, an address.
USER_ID = r"^[A-Za-z0-9][A-Za-z0-9._:@|+=~-]{0,127}$"
PRINTABLE = r"^[ -~]{1,128}$"
SHORT = r"^[ -~]{1,64}$"
DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
KEY: Schema = {"type": "string", "pattern": PRINTABLE, "description": "scope: the user; kept for 90 days"}
ANY: Schema = {"type": "object"}
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
INSTANT: Schema = {"type": "string", "format": "date-time"}
NEXT_PAGE: Schema = {"type": ["string", "null"], "description": "null: no more"}


def list_of(items: Schema, **more: Any) -> Schema:
    """Return the schema of a list. more: further schema keywords."""
    return {"type": "array", "items": items} | more


def open_object(fields: Mapping[str, Schema], **more: Any) -> Schema:
    """Return the schema of an object that has these fields, and may have others.

    fields: by name; one whose name ends in ? may be left out. more: further schema keywords.
    """
    required = [name for name in fields if not name.endswith("?")]
    properties = {name.removesuffix("?"): each for name, each in fields.items()}
    return {"type": "object", "required": required, "properties": properties} | more


def closed_object(fields: Mapping[str, Schema], **more: Any) -> Schema:
    """Return the schema of an object that may have only these fields; as open_object."""
    return open_object(fields, additionalProperties=False, **more)


ERROR = closed_object(
    {
        "error": closed_object(
            {
                "code": {
                    "type": "string",
                    "enum": sorted(CODES),
                    "description": "; ".join(f"{code}: {meaning}" for code, meaning in sorted(CODES.items())),
                },
                "message": {"type": "string"},
                "details?": {},
            }
        )
    }
)
