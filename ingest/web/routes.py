"""Routes of the HTTP API, as the OpenAPI document and template.yaml have them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ingest.web.json_schema import ANY, TEXT, Schema
from ingest.web.paging import FIRST_DATE, LAST_DATE, LIMIT_MAX
from rules.parts import Part

Parameter = dict[str, Any]
# The OpenAPI document, as ingest.openapi makes it. It is stored, so that who serves it needs no other's code.
DOCUMENT = Path(__file__).parents[1] / "openapi.json"
# The same as a page, as infra.api_reference makes it.
REFERENCE = Path(__file__).parents[1] / "reference.html"
SPAN_END: Schema = TEXT | {
    "description": f"a date or an RFC 3339 instant, from {FIRST_DATE} to {LAST_DATE}, both included"
}


@dataclass(frozen=True, slots=True)
class Route:
    """One route, as the OpenAPI document and the template have it."""

    name: str  # its logical id in the template, without `Route`
    api: str  # the function that answers it, `{api}Function` in the template
    key: str  # as API Gateway names it, `GET /v1/users/{user_id}`
    summary: str
    parameters: Sequence[Parameter] = ()
    body: Schema | None = None  # None for a route without one
    status: int = 200
    answer: Schema = field(default_factory=lambda: ANY)
    is_open: bool = False  # anybody may call it, without a token
    # The first request answers `status`, the same body again answers 200 with what is stored
    may_repeat: bool = False
    # The answer with status 200 to a request that prefers to wait (RFC 7240)
    waited: Schema | None = None
    description: str = ""
    part: Part | None = None  # the part that it is of, if a deployment may leave it out

    @property
    def method(self) -> str:
        """As OpenAPI writes it: `get`."""
        return self.key.partition(" ")[0].lower()

    @property
    def path(self) -> str:
        """Its path: `/v1/users/{user_id}`."""
        return self.key.partition(" ")[2]


def in_path(name: str, schema: Schema) -> Parameter:
    """Return a parameter that is a part of the path."""
    return {"name": name, "in": "path", "required": True, "schema": schema}


def in_header(name: str, schema: Schema) -> Parameter:
    """Return a parameter that is a header."""
    return {"name": name, "in": "header", "required": False, "schema": schema}


def in_query(name: str, schema: Schema, required: bool = False) -> Parameter:
    """Return a parameter of the query."""
    return {"name": name, "in": "query", "required": required, "schema": schema}


def limit_to(most: int) -> Parameter:
    """Return the parameter of the query that says how many rows a page has."""
    return in_query("limit", {"type": "integer", "minimum": 1, "maximum": most})


CURSOR = in_query("cursor", TEXT)
SPAN = [in_query("from", SPAN_END), in_query("to", SPAN_END)]
POSITION = [limit_to(LIMIT_MAX), CURSOR]
PAGE = [*SPAN, *POSITION]
