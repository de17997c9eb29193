"""What the bodies of all routes share: the type of a JSON Schema, common patterns, the error body."""

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


def closed_object(required: list[str], properties: dict[str, Schema], **more: Any) -> Schema:
    """Return the schema of an object that may have only these properties. more: further schema keywords."""
    whole = {"type": "object", "required": required, "properties": properties, "additionalProperties": False}
    return whole | more


ERROR = closed_object(
    ["error"],
    {
        "error": closed_object(
            ["code", "message"],
            {
                "code": {
                    "type": "string",
                    "enum": sorted(CODES),
                    "description": "; ".join(f"{code}: {meaning}" for code, meaning in sorted(CODES.items())),
                },
                "message": {"type": "string"},
                "details": {},
            },
        )
    },
)
