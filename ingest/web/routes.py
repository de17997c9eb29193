"""How a route is declared. The OpenAPI document and template.yaml both follow from the declaration."""

from dataclasses import dataclass, field
from typing import Any

from ingest.web.json_schema import ANY, Schema
from ingest.web.paging import FIRST_DATE, LAST_DATE

Parameter = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Route:
    """One route.

    name: the template's logical id without `Route`. Never change it, or a deployment makes the route anew.
    api: the function that answers it, `{api}Function` in the template. body: None for a route without one.
    description: what a caller should know beyond the summary.
    is_open: anybody may call it, without a token. may_repeat: the first request answers `status`, the same
    body again answers 200 with what is stored.
    """

    name: str
    api: str
    method: str
    path: str
    summary: str
    parameters: list[Parameter] = field(default_factory=list)
    body: Schema | None = None
    status: int = 200
    answer: Schema = field(default_factory=lambda: ANY)
    is_open: bool = False
    may_repeat: bool = False
    description: str = ""

    @property
    def key(self) -> str:
        """The route as API Gateway names it: `GET /v1/users/{user_id}`."""
        return f"{self.method.upper()} {self.path}"


def in_path(name: str, schema: Schema) -> Parameter:
    """Return a parameter that is a part of the path."""
    return {"name": name, "in": "path", "required": True, "schema": schema}


def in_query(name: str, schema: Schema, required: bool = False) -> Parameter:
    """Return a parameter of the query."""
    return {"name": name, "in": "query", "required": required, "schema": schema}


def matching(pattern: str) -> Schema:
    """Return the schema of a text that matches a pattern."""
    return {"type": "string", "pattern": pattern}


TEXT: Schema = {"type": "string"}
SPAN_END: Schema = TEXT | {
    "description": f"a date or an RFC 3339 instant, from {FIRST_DATE} to {LAST_DATE}, both included"
}
SPAN = [in_query("from", SPAN_END), in_query("to", SPAN_END)]
PLACE = [in_query("limit", {"type": "integer", "minimum": 1, "maximum": 500}), in_query("cursor", TEXT)]
PAGE = [*SPAN, *PLACE]
