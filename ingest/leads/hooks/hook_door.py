"""Who may come in: a request that fits a hook of this organization and source.

Whatever is wrong, the answer is the same 401: unknown organization, unknown source, wrong signature, wrong
page. Under a flood it is the same 503. So nobody learns from it which organizations there are.
"""

import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from adapters.leads.ecdsa import ecdsa_check, new_key_pair
from ingest.leads import sources
from ingest.leads.hooks.hook_requests import HookRequest, origin_of
from ingest.leads.hooks.known_hooks import KnownHooks, TooManyUnknown
from ingest.leads.lead_schemas import ORGANIZATION
from ingest.leads.sources import Source
from ingest.web.caller import ApiError
from ingest.web.validate import first_problem
from rules.leads.hooks import (
    Algorithm,
    Claim,
    Hook,
    HookSecret,
    Signature,
    challenge_token,
    claim_of,
    hmac_check,
    is_fresh,
    is_signed,
)

Fits = Callable[[Hook], bool]


def refused() -> ApiError:
    """Return the one refusal."""
    return ApiError(401, "unauthorized", "there is no such hook, or its secret did not sign this")


@dataclass(frozen=True, slots=True)
class _Asked:
    """Which hook a request names, and whose connection it is."""

    organization: str
    source: str
    address: str


class HookDoor:
    """Lets requests in by the hooks that are known."""

    def __init__(self, known: KnownHooks) -> None:
        self._known = known

    def signed(
        self, organization: str, source: str, request: HookRequest, now: datetime
    ) -> tuple[Hook, Source, Claim]:
        """Return the hook whose secret signed a request, and what was signed; raises 401 and 503."""
        read = _source(source)
        scheme = read.signature
        claim = claim_of(scheme, request.headers, request.body) if scheme else None
        if scheme is None or claim is None or not is_fresh(claim, now):
            raise refused()
        check = ecdsa_check if scheme.algorithm is Algorithm.ECDSA_SHA256 else hmac_check(scheme)
        asked = _Asked(organization, source, request.address)
        hook = self._fitting(asked, _nobody(scheme), lambda hook: is_signed(claim, hook.valid(now), check))
        return hook, read, claim

    def of_page(self, organization: str, source: str, request: HookRequest) -> tuple[Hook, Source]:
        """Return the hook that takes forms of the page that sent a request; raises 401 and 503."""
        read, origin = _source(source), origin_of(request.headers)
        if read.from_browser is None:
            raise refused()
        asked = _Asked(organization, source, request.address)
        return self._fitting(asked, None, lambda hook: origin in hook.origins), read

    def challenged(
        self, organization: str, source: str, request: HookRequest, query: Mapping[str, str], now: datetime
    ) -> str:
        """Return what a vendor wants to read back before it sends webhooks; raises 401 and 503."""
        read = _source(source).challenge
        asked = read(query) if read else None
        if asked is None:
            raise refused()
        token, answer = asked

        def fits(hook: Hook) -> bool:
            given = token.encode()
            found = [hmac.compare_digest(challenge_token(each).encode(), given) for each in hook.valid(now)]
            return any(found)

        self._fitting(_Asked(organization, source, request.address), None, fits)
        return answer

    def _fitting(self, asked: "_Asked", nobody: Hook | None, fits: Fits) -> Hook:
        """Return the hook that fits, as it is remembered or as it is now. nobody: stands for no hook.

        Checking a hook that nobody has takes the time that checking a real one takes.
        """
        if first_problem({"type": "string", "pattern": ORGANIZATION}, asked.organization):
            raise refused()
        tried: Hook | None = None
        name = (asked.organization, asked.source)
        for is_again in (False, True):
            try:
                hook = self._known.again(*name, asked.address) if is_again else self._known.get(*name)
            except TooManyUnknown:  # the same answer for hooks that there are, and for others
                raise ApiError(503, "unavailable", "try again", headers={"Retry-After": "5"}) from None
            checked = hook or nobody
            if checked is not None and checked is not tried and fits(checked) and hook is not None:
                return hook
            tried = checked
        raise refused()


def _source(name: str) -> Source:
    if name not in sources.names():
        raise refused()
    return sources.source_named(name)


@cache
def _nobody(scheme: Signature) -> Hook:
    """Return a hook of nobody's, with a secret that this process threw away."""
    is_public = scheme.algorithm is Algorithm.ECDSA_SHA256
    return Hook("", "", (HookSecret(new_key_pair()[1] if is_public else secrets.token_hex(32)),))
