"""Requests to hooks, and who may come in by a hook.

Whatever is wrong with a request, the answer is the same 401.
"""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from adapters.leads.ecdsa import ecdsa_check, new_key_pair
from ingest.leads import forms, sources
from ingest.leads.known_hooks import HookName, KnownHooks, TooManyUnknown
from ingest.leads.lead_schemas import ORGANIZATION
from ingest.leads.sources import Source
from ingest.web.caller import ApiError
from ingest.web.http import BODY_BYTES_MAX
from ingest.web.validate import first_problem
from rules.leads.hooks import (
    Algorithm,
    Hook,
    HookSecret,
    Signature,
    SignedDelivery,
    challenge_token,
    hmac_check,
    is_fresh,
    is_signed,
    read_delivery,
)

FORM_BYTES_MAX = 100_000


@dataclass(frozen=True, slots=True)
class HookRequest:
    """A request to a hook."""

    headers: Mapping[str, str]  # names in lower case
    body: bytes
    address: str  # whose connection it is, as the gateway says

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
        media_types = ", ".join(forms.MEDIA_TYPES)
        raise ApiError(415, "unsupported_media_type", f"content-type must be one of {media_types}")
    try:
        return forms.read_form(request.headers["content-type"], request.body)
    except forms.NoForm as error:
        raise ApiError(400, "invalid_json", f"the form cannot be read: {error}"[:300]) from None


def delivery_id(fields: Mapping[str, str], now: datetime) -> str:
    """Return the name of a submitted form: the same fields on the same date (UTC) are one submission.

    With a `submission_id` of the page's own the date does not matter.
    """
    day = "" if fields.get("submission_id") else now.date().isoformat()
    text = json.dumps([day, sorted(fields.items())])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def origin_of(headers: Mapping[str, str]) -> str | None:
    """Return the origin of the page that sent a request, such as `https://acme.example`; None: unknown."""
    if origin := headers.get("origin"):
        return origin
    page = urlsplit(headers.get("referer", ""))
    return f"{page.scheme}://{page.netloc}" if page.scheme and page.netloc else None


def hook_refusal() -> ApiError:
    """Return the one answer to whatever is wrong with a request."""
    return ApiError(401, "unauthorized", "there is no such hook, or its secret did not sign this")


class HookAuthenticator:
    """Lets requests in by the hooks that are known."""

    def __init__(self, known: "KnownHooks") -> None:
        self._known = known

    def signed(
        self, organization: str, source_name: str, request: HookRequest, now: datetime
    ) -> tuple[Hook, Source, SignedDelivery]:
        """Return the hook whose secret signed a request, its source, and what was signed.

        Raises 401 and 503.
        """
        source = _source(source_name)
        scheme = source.signature
        delivery = read_delivery(scheme, request.headers, request.body) if scheme else None
        if scheme is None or delivery is None or not is_fresh(delivery, now):
            raise hook_refusal()
        check = ecdsa_check if scheme.algorithm is Algorithm.ECDSA_SHA256 else hmac_check(scheme)

        def fits(hook: Hook) -> bool:
            return is_signed(delivery, hook.valid(now), check)

        name, decoy = (organization, source_name), _decoy_hook(scheme)
        return self._fitting_hook(name, request.address, fits, decoy), source, delivery

    def of_page(self, organization: str, source_name: str, request: HookRequest) -> tuple[Hook, Source]:
        """Return the hook that takes forms of the page that sent a request, and its source.

        Raises 401 and 503.
        """
        source, origin = _source(source_name), origin_of(request.headers)
        if source.from_browser is None:
            raise hook_refusal()
        name = (organization, source_name)
        return self._fitting_hook(name, request.address, lambda hook: origin in hook.origins), source

    def challenged(
        self,
        organization: str,
        source_name: str,
        request: HookRequest,
        query: Mapping[str, str],
        now: datetime,
    ) -> str:
        """Return what a vendor wants to read back before it sends webhooks; raises 401 and 503."""
        challenge = _source(source_name).challenge
        question = challenge(query) if challenge else None
        if question is None:
            raise hook_refusal()
        token, answer = question

        def fits(hook: Hook) -> bool:
            tokens = [challenge_token(secret).encode() for secret in hook.valid(now)]
            results = [hmac.compare_digest(valid, token.encode()) for valid in tokens]
            return any(results)

        self._fitting_hook((organization, source_name), request.address, fits)
        return answer

    def _fitting_hook(
        self, name: HookName, address: str, fits: Callable[[Hook], bool], decoy: Hook | None = None
    ) -> Hook:
        """Return the hook of this name if it fits, as it is remembered or as it is now; raises 401 and 503.

        decoy: a hook that is checked in place of one that is not there, so that both take the same time.
        """
        if first_problem({"type": "string", "pattern": ORGANIZATION}, name[0]):
            raise hook_refusal()
        checked: Hook | None = None
        for is_reread in (False, True):
            try:
                hook = self._known.reread(*name, address) if is_reread else self._known.get(*name)
            except TooManyUnknown:  # the same answer for hooks that there are, and for others
                raise ApiError(503, "unavailable", "try again", headers={"Retry-After": "5"}) from None
            candidate = hook or decoy
            if candidate is not None and candidate is not checked and fits(candidate) and hook is not None:
                return hook
            checked = candidate
        raise hook_refusal()


def _source(name: str) -> Source:
    if name not in sources.names():
        raise hook_refusal()
    return sources.source_named(name)


@cache
def _decoy_hook(scheme: Signature) -> Hook:
    """Return a hook that belongs to nobody. Nobody knows its secret or its private key."""
    is_public = scheme.algorithm is Algorithm.ECDSA_SHA256
    return Hook("", "", (HookSecret(new_key_pair()[1] if is_public else secrets.token_hex(32)),))
