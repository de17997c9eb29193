"""Reads bodies, and writes answers and errors, as the OpenAPI document describes them."""

import base64
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from aws_lambda_powertools.event_handler import Response

from ingest.web.caller import DETAILS_MAX, ApiError, invalid_fields
from ingest.web.json_schema import Schema
from ingest.web.validate import body_problems
from rules.json_values import NoJson, Pairs, cut_text, read_json

BODY_BYTES_MAX = 1_000_000
# Of each text in a refusal: a function may answer 6 MB, and escapes make a request's words six times as long.
REFUSAL_CHARACTERS_MAX = 500
# Answers are about people and hold what people wrote. A browser must not keep them or show them as a page.
SECURITY_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


def json_body(
    event: Mapping[str, Any], schema: Schema, batch: str = "", pairs: Pairs | None = None
) -> dict[str, Any]:
    """Return the body of a request if the schema accepts it; raises 400, 413, or 422 with all faulty fields.

    batch: a field of which the caller checks each part by itself, with body_problems.
    pairs: as of read_json.
    """
    raw = event.get("body") or ""
    data = _from_base64(raw) if event.get("isBase64Encoded") else raw.encode(errors="surrogatepass")
    if len(data) > BODY_BYTES_MAX:
        raise ApiError(413, "too_large", f"the body is over {BODY_BYTES_MAX} bytes")
    body = json_of(data, pairs)
    if problems := body_problems(_without_batch_items(schema, batch), body, apart=batch):
        raise invalid_fields(problems)
    # JSON Schema accepts 5.0 as an integer. The tables need the int 5.
    whole = {name for name, each in schema["properties"].items() if each.get("type") == "integer"}
    return {name: int(value) if name in whole else value for name, value in body.items()}


def _without_batch_items(schema: Schema, batch: str) -> Schema:
    """Return a schema that says nothing of a batch's parts."""
    if not batch:
        return schema
    without_items = {name: value for name, value in schema["properties"][batch].items() if name != "items"}
    return {**schema, "properties": {**schema["properties"], batch: without_items}}


def json_of(data: bytes, pairs: Pairs | None = None) -> Any:
    """Read the JSON of a body; raises 400. No schema has checked it yet."""
    try:
        return read_json(data, pairs)
    except NoJson as error:
        raise ApiError(400, "invalid_json", f"the body is not JSON: {error}"[:300]) from None


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ApiError(400, "invalid_json", "the body is not what the gateway says it is") from None


def json_response(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Response[str]:
    """Return a JSON response."""
    text = json.dumps(body, separators=(",", ":"))
    return Response(
        status, content_type="application/json", body=text, headers={**SECURITY_HEADERS, **(headers or {})}
    )


def error_response(error: ApiError) -> Response[str]:
    """Return an error as the OpenAPI document describes it, short enough for a function's answer."""
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.details is not None:
        body["details"] = error.details
    return json_response(error.status, {"error": shorten_details(body)}, error.headers)


def shorten_details(value: Any) -> Any:
    """Return what is wrong with a request: the first DETAILS_MAX of each list, each long text's beginning."""
    if isinstance(value, Mapping):
        return {name: shorten_details(each) for name, each in value.items()}
    if isinstance(value, list):
        return [shorten_details(each) for each in value[:DETAILS_MAX]]
    return cut_text(value, REFUSAL_CHARACTERS_MAX) if isinstance(value, str) else value


def exact_json(value: Any) -> str:
    """Return JSON, as compact as that of `json_response`. Decimals become numbers.

    Raises ValueError for a number that is not finite.
    """
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError(f"{value} is no JSON number")
        return format(value, "f")
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(name)}:{exact_json(each)}" for name, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(exact_json, value)) + "]"
    return json.dumps(value, allow_nan=False)
