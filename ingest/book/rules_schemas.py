"""The bodies and answers of /v1/rules, as JSON Schema."""

from ingest.web.json_schema import INSTANT, TEXT, Schema, closed_object, list_of

NOW = "now"
PUBLICATION = closed_object(
    {
        # What is wrong with a book is told in full by ingest.book.publication, not by its first fault alone.
        "book": {"type": "object", "description": "as GET /v1/rules shows it: components.schemas.Book"},
        "effective?": {
            "type": "string",
            "maxLength": 40,
            "description": "`now`, as if left out, or an instant with its zone: from when it is in force",
        },
        "note?": {"type": "string", "maxLength": 500, "description": "why, for those who come later"},
        "rerate?": {
            "type": "boolean",
            "description": "effective may be in the past: `streakline rerate` judges anew what came since",
        },
    }
)
_VERSION_FIELDS: dict[str, Schema] = {
    "version": {"type": "integer", "minimum": 1},
    "effective_at": INSTANT,
    "published_at": INSTANT,
    "author?": {"type": "string", "description": "admins alone"},
    "note": TEXT,
}
VERSION = closed_object(_VERSION_FIELDS)
RULES = closed_object({**_VERSION_FIELDS, "book": {"$ref": "#/components/schemas/Book"}})
VERSIONS = closed_object({"versions": list_of(VERSION)})
