"""Requests to hooks: which hook a request may use.

A caller cannot learn whether a hook exists: an unknown hook and a wrong secret get the same 401.
"""

import base64
import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from adapters.leads.ecdsa import ecdsa_check, new_key_pair
from ingest.leads import sources
from ingest.leads.known_hooks import HookName, KnownHooks, TooManyUnknown
from ingest.leads.lead_schemas import ORGANIZATION
from ingest.leads.sources import Source
from ingest.web.api import BODY_BYTES_MAX
from ingest.web.caller import ApiError
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


@dataclass(frozen=True, slots=True)
class HookRequest:
    """A request to a hook."""

    headers: Mapping[str, str]  # names in lower case
    body: bytes
    address: str  # of the sender's connection, as the gateway reports it

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


def origin_of(headers: Mapping[str, str]) -> str | None:
    """Return the origin of the page that sent a request, such as `https://acme.example`; None: unknown."""
    if origin := headers.get("origin"):
        return origin
    page = urlsplit(headers.get("referer", ""))
    return f"{page.scheme}://{page.netloc}" if page.scheme and page.netloc else None


def hook_refusal() -> ApiError:
    """Return the one answer to an unknown hook, and to a request that does not fit it."""
    return ApiError(401, "unauthorized", "there is no such hook, or its secret did not sign this")


class HookAuthenticator:
    """Finds the hook that a request may use. Each method raises 401, or 503 for a caller to try again."""

    def __init__(self, known_hooks: KnownHooks) -> None:
        self._known_hooks = known_hooks

    def authenticate_webhook(
        self, organization: str, source_name: str, request: HookRequest, now: datetime
    ) -> tuple[Hook, Source, SignedDelivery]:
        """Return the hook whose secret signed a request, its source, and the signed message."""
        source = _source(source_name)
        scheme = source.signature
        delivery = read_delivery(scheme, request.headers, request.body) if scheme else None
        if scheme is None or delivery is None or not is_fresh(delivery, now):
            raise hook_refusal()
        check = ecdsa_check if scheme.algorithm is Algorithm.ECDSA_SHA256 else hmac_check(scheme)

        def fits(hook: Hook) -> bool:
            return is_signed(delivery, hook.valid(now), check)

        hook = self._fitting_hook((organization, source_name), request.address, fits, _decoy_hook(scheme))
        return hook, source, delivery

    def authenticate_form(
        self, organization: str, source_name: str, request: HookRequest
    ) -> tuple[Hook, Source]:
        """Return the hook that takes forms of the page that sent a request, and its source."""
        source, origin = _source(source_name), origin_of(request.headers)
        if source.from_browser is None:
            raise hook_refusal()
        name = (organization, source_name)
        return self._fitting_hook(name, request.address, lambda hook: origin in hook.origins), source

    def answer_challenge(
        self,
        organization: str,
        source_name: str,
        request: HookRequest,
        query: Mapping[str, str],
        now: datetime,
    ) -> str:
        """Return the text that a vendor wants to read back before it sends webhooks."""
        read_challenge = _source(source_name).challenge
        challenge = read_challenge(query) if read_challenge else None
        if challenge is None:
            raise hook_refusal()
        token, reply = challenge

        def fits(hook: Hook) -> bool:
            tokens = [challenge_token(secret).encode() for secret in hook.valid(now)]
            # All are compared before any() looks, so that the time does not tell which one fits.
            results = [hmac.compare_digest(valid, token.encode()) for valid in tokens]
            return any(results)

        self._fitting_hook((organization, source_name), request.address, fits)
        return reply

    def _fitting_hook(
        self, name: HookName, address: str, fits: Callable[[Hook], bool], decoy: Hook | None = None
    ) -> Hook:
        """Return the hook of this name if it fits, as it is remembered or as it is now; raises 401 and 503.

        decoy: a hook that is checked in place of one that does not exist, so that both take the same time. It
        never lets anybody in.
        """
        organization, source_name = name
        if first_problem({"type": "string", "pattern": ORGANIZATION}, organization):
            raise hook_refusal()
        remembered = self._known_hooks.get(organization, source_name)
        checked = remembered or decoy
        if checked is not None and fits(checked) and remembered is not None:
            return remembered
        try:
            current = self._known_hooks.reread(organization, source_name, address)
        except TooManyUnknown:  # raised for hooks that exist as for others, so nobody learns which do
            raise ApiError(503, "unavailable", "try again", headers={"Retry-After": "5"}) from None
        candidate = current or decoy
        if candidate is not None and candidate is not checked and fits(candidate) and current is not None:
            return current
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
