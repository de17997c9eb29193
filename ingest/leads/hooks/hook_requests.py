"""What a vendor sent, byte for byte, and what a browser's form holds."""

import base64
import email.policy
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.parser import BytesParser
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ingest.web.caller import ApiError
from ingest.web.http import BODY_BYTES_MAX, json_of

FORM_BYTES_MAX = 100_000
FIELDS_MAX = 50
NAME_CHARACTERS_MAX = 64
URLENCODED, MULTIPART, JSON = "application/x-www-form-urlencoded", "multipart/form-data", "application/json"


@dataclass(frozen=True, slots=True)
class HookRequest:
    """headers: names in lower case. address: whose connection it is, as the gateway says."""

    headers: Mapping[str, str]
    body: bytes
    address: str

    @property
    def media_type(self) -> str:
        """The type of the body, without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


def hook_request(event: Mapping[str, Any]) -> HookRequest:
    """Read a request of the gateway; raises 400, 413 for more than 1 MB, and 415 for a compressed body."""
    headers = {name.lower(): str(value) for name, value in (event.get("headers") or {}).items()}
    text = event.get("body") or ""
    try:
        body = base64.b64decode(text, validate=True) if event.get("isBase64Encoded") else text.encode()
    except ValueError:
        raise ApiError(400, "invalid_json", "the body is not what the gateway says it is") from None
    if len(body) > BODY_BYTES_MAX:
        raise ApiError(413, "too_large", f"the body is over {BODY_BYTES_MAX} bytes")
    if headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise ApiError(415, "unsupported_media_type", "a compressed body is not taken")
    return HookRequest(headers, body, event["requestContext"]["http"].get("sourceIp", ""))


def form_fields(request: HookRequest) -> dict[str, str]:
    """Read a form's fields, name in lower case -> text; several values of one name are joined by a comma.

    Files are left out. Raises 400, 413, 415 and 422.
    """
    if len(request.body) > FORM_BYTES_MAX:
        raise ApiError(413, "too_large", f"the form is over {FORM_BYTES_MAX} bytes")
    readers = {URLENCODED: _urlencoded, MULTIPART: _multipart, JSON: _json}
    if request.media_type not in readers:
        raise ApiError(415, "unsupported_media_type", f"content-type must be one of {', '.join(readers)}")
    try:
        pairs = list(readers[request.media_type](request))
    except (ValueError, RecursionError, LookupError) as error:
        raise ApiError(400, "invalid_json", f"the form cannot be read: {error}"[:300]) from None
    fields: dict[str, str] = {}
    for name, value in pairs:
        key = name.strip().lower()[:NAME_CHARACTERS_MAX]
        fields[key] = f"{fields[key]}, {value}" if key in fields else value
    if len(pairs) > FIELDS_MAX:
        raise ApiError(422, "invalid_field", f"fields must be at most {FIELDS_MAX}")
    return fields


def _urlencoded(request: HookRequest) -> Iterable[tuple[str, str]]:
    text = request.body.decode("ascii")
    return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=2 * FIELDS_MAX)


def _multipart(request: HookRequest) -> Iterable[tuple[str, str]]:
    head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
    whole = BytesParser(policy=email.policy.HTTP).parsebytes(head + request.body)
    if not whole.is_multipart():
        raise ValueError("it has no parts")
    for part in whole.iter_parts():
        name = part.get_param("name", header="content-disposition")
        if isinstance(name, str) and part.get_filename() is None:
            value = part.get_payload(decode=True)
            if not isinstance(value, bytes):
                raise ValueError(f"{name} holds parts")
            yield name, value.decode()


def _json(request: HookRequest) -> Iterable[tuple[str, str]]:
    held = json_of(request.body)
    if not isinstance(held, dict):
        raise ApiError(422, "invalid_field", "body must be an object")
    inner = held.get("fields")
    for name, value in ({**held, **inner} if isinstance(inner, dict) else held).items():
        if isinstance(value, (str, int, float)):
            yield name, value if isinstance(value, str) else json.dumps(value)
        elif value is not None and value is not inner:
            raise ValueError(f"{name[:NAME_CHARACTERS_MAX]} is no text")


def delivery_id(fields: Mapping[str, str], now: datetime) -> str:
    """Return the name of a submitted form: the same fields on the same date (UTC) are one submission.

    With a `submission_id` of the page's own the date does not matter.
    """
    day = "" if fields.get("submission_id") else now.date().isoformat()
    told = json.dumps([day, sorted(fields.items())])
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def origin_of(headers: Mapping[str, str]) -> str | None:
    """Return the origin of the page that sent a request, such as `https://acme.example`; None: unknown."""
    if origin := headers.get("origin"):
        return origin
    page = urlsplit(headers.get("referer", ""))
    return f"{page.scheme}://{page.netloc}" if page.scheme and page.netloc else None
