"""The bodies and answers of /v1/rules, as JSON Schema, and its routes."""

from ingest.web.json_schema import Schema, closed_object
from ingest.web.routes import Route, in_query

NOW = "now"
RULES_API = "RulesApi"
PUBLICATION = closed_object(
    ["book"],
    {
        # What is wrong with a book is told in full by ingest.book.checking, and not by its first fault alone.
        "book": {"type": "object", "description": "as GET /v1/rules shows it: components.schemas.Book"},
        "effective": {
            "type": "string",
            "maxLength": 40,
            "description": "`now`, as if left out, or an instant with its zone: from when it is in force",
        },
        "note": {"type": "string", "maxLength": 500, "description": "why, for those who come later"},
        "rerate": {
            "type": "boolean",
            "description": "effective may be in the past: `streakline rerate` judges anew what came since",
        },
    },
)
_INSTANT: Schema = {"type": "string", "format": "date-time"}
_TOLD: dict[str, Schema] = {
    "version": {"type": "integer", "minimum": 1},
    "effective_at": _INSTANT,
    "published_at": _INSTANT,
    "author": {"type": "string", "description": "admins alone"},
    "note": {"type": "string"},
}
VERSION = closed_object(["version", "effective_at", "published_at", "note"], _TOLD)
RULES = closed_object(
    [*VERSION["required"], "book"], {**_TOLD, "book": {"$ref": "#/components/schemas/Book"}}
)
VERSIONS = closed_object(["versions"], {"versions": {"type": "array", "items": VERSION}})

RULES_ROUTES = [
    Route(
        "GetRules",
        RULES_API,
        "get",
        "/v1/rules",
        "The book of rules in force",
        [in_query("at", _INSTANT)],
        answer=RULES,
        description="Its schema is components.schemas.Book.",
    ),
    Route(
        "GetRuleVersions",
        RULES_API,
        "get",
        "/v1/rules/versions",
        "All versions, the newest first (admins)",
        answer=VERSIONS,
    ),
    Route(
        "PostRules",
        RULES_API,
        "post",
        "/v1/rules",
        "Publish a version of the book (admins)",
        body=PUBLICATION,
        status=201,
        answer=VERSION,
        description="Every function knows it within a minute. An event is judged by the version in force when"
        " it occurred, as far as it is known when the event arrives.",
    ),
]
