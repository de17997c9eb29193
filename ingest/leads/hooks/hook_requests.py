"""What a vendor or a browser sent, byte for byte."""

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from ingest.leads import forms
from ingest.web.caller import ApiError
from ingest.web.http import BODY_BYTES_MAX

FORM_BYTES_MAX = 100_000


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
    """Read a form's fields as ingest.leads.forms does; raises 400, 413 and 415."""
    if len(request.body) > FORM_BYTES_MAX:
        raise ApiError(413, "too_large", f"the form is over {FORM_BYTES_MAX} bytes")
    if request.media_type not in forms.MEDIA_TYPES:
        known = ", ".join(forms.MEDIA_TYPES)
        raise ApiError(415, "unsupported_media_type", f"content-type must be one of {known}")
    try:
        return forms.read_form(request.headers["content-type"], request.body)
    except forms.NoForm as error:
        raise ApiError(400, "invalid_json", f"the form cannot be read: {error}"[:300]) from None


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
