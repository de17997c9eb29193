"""Requests to hooks (HookRequest), who may come in by one (HookAuthenticator), and the hooks that a process
remembers (KnownHooks).

Whatever is wrong with a request, the answer is the same 401.
"""

import base64
import hashlib
import hmac
import json
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, TypeVar
from urllib.parse import urlsplit

from adapters.leads.ecdsa import ecdsa_check, new_key_pair
from adapters.leads.hook_store import HookStore, NoHook
from adapters.logs import Logger
from adapters.platform.aws import Unavailable
from adapters.platform.limits import network_of
from ingest.leads import forms, sources
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

# KnownHooks says what these are for.
CACHE_SECONDS = 60.0
REREAD_SECONDS = 2.0
LIST_SECONDS = 60.0
NAMES_MAX = 1_000
STRANGERS_PER_SECOND, STRANGERS_BURST = 5.0, 20.0
SHARE_OF_ADDRESS = 1 / 4  # of the allowance
FORM_BYTES_MAX = 100_000
Name = tuple[str, str]  # organization, source
K = TypeVar("K")
T = TypeVar("T")

logger = Logger(service="hooks-api")


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


class TooManyUnknown(RuntimeError):
    """So many requests have fitted no hook that this one is not examined now."""


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
        self, name: Name, address: str, fits: Callable[[Hook], bool], decoy: Hook | None = None
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


@dataclass(frozen=True, slots=True)
class _CachedHook:
    """A hook as it was read, and when."""

    hook: Hook | None  # None: there was none of this name
    read_at: float  # seconds of a clock that never goes back


@dataclass(frozen=True, slots=True)
class _TokenBucket:
    """How many requests that fit no hook may be examined."""

    tokens: float  # one for each request
    counted_at: float  # when there were so many, by the clock

    def refilled(self, share: float, now: float) -> "_TokenBucket":
        """Return the bucket as it is now. share: its part of what all senders together have."""
        tokens = self.tokens + (now - self.counted_at) * STRANGERS_PER_SECOND * share
        return _TokenBucket(min(STRANGERS_BURST * share, tokens), now)

    def without_one(self) -> "_TokenBucket":
        """Return the bucket after one request more."""
        return _TokenBucket(self.tokens - 1, self.counted_at)


class KnownHooks:
    """What one process remembers of hooks, so that it reads Secrets Manager about once a minute for each.

    A hook is remembered for a minute. It is read again sooner if a request does not fit what is remembered,
    at most once in two seconds. So a new secret is valid two seconds after it was stored, and `streakline
    hook` prints it only then.

    Anybody may ask for hooks that do not exist, under as many names as they like. So a process lists the
    names that there are, once a minute: a hook on that list is read at once, whatever else comes. A request
    that fits no hook of its name costs one of an allowance that grows by a few a second, whether there is a
    hook of that name or not. When it is used up, all of them are told to try again: nobody learns which hooks
    there are. An address, or a network of IPv6, has a quarter of the allowance at most, so one sender cannot
    use up all of it. Within the allowance a name that is not on the list is looked up, too, because the list
    may be some minutes behind a new hook. Of these names the newest thousand are remembered.
    """

    def __init__(self, store: HookStore, clock: Callable[[], float]) -> None:
        """clock: returns seconds, and never goes back."""
        self._store, self._clock = store, clock
        self._hooks, self._strangers = OrderedDict[Name, _CachedHook](), OrderedDict[Name, _CachedHook]()
        self._misfits = OrderedDict[Name, float]()  # when a request that fitted nothing was last examined
        self._listed_names, self._listed_at = frozenset[Name](), -LIST_SECONDS
        self._allowance = _TokenBucket(STRANGERS_BURST, clock())  # of all senders together
        self._network_allowances = OrderedDict[str, _TokenBucket]()

    def get(self, organization_id: str, source: str) -> Hook | None:
        """Return a hook as it was at most a minute ago; None if none is known."""
        name = (organization_id, source)
        cached = self._hooks.get(name) or self._strangers.get(name)
        if cached and self._clock() - cached.read_at < CACHE_SECONDS:
            return cached.hook
        return self._read(name) if name in self._hooks or self._is_listed(name) else None

    def reread(self, organization_id: str, source: str, address: str) -> Hook | None:
        """Return a hook as it was at most two seconds ago, for a request that does not fit; None: no hook.

        address: of the sender. Raises TooManyUnknown if the sender's allowance or that of all is used up.
        Both are spent once in two seconds for each name.
        """
        name, now = (organization_id, source), self._clock()
        if now - self._misfits.get(name, -REREAD_SECONDS) >= REREAD_SECONDS:
            self._spend_allowance(network_of(address), now)
            _remember(self._misfits, name, now)
        cached = self._hooks.get(name) or self._strangers.get(name)
        return cached.hook if cached and now - cached.read_at < REREAD_SECONDS else self._read(name)

    def _is_listed(self, name: Name) -> bool:
        if self._clock() - self._listed_at >= LIST_SECONDS:
            self._listed_at = self._clock()
            try:
                self._listed_names = frozenset(self._store.names())
            except Unavailable:
                logger.exception("the list of hooks stays as it was")
        return name in self._listed_names

    def _read(self, name: Name) -> Hook | None:
        try:
            hook = self._store.get(*name)
        except NoHook:
            hook = None
        self._hooks.pop(name, None)
        self._strangers.pop(name, None)
        _remember(self._strangers if hook is None else self._hooks, name, _CachedHook(hook, self._clock()))
        return hook

    def _spend_allowance(self, network: str, now: float) -> None:
        """Spend one request of the network's allowance and of that of all; raises TooManyUnknown."""
        new_bucket = _TokenBucket(STRANGERS_BURST * SHARE_OF_ADDRESS, now)
        of_network = self._network_allowances.get(network, new_bucket).refilled(SHARE_OF_ADDRESS, now)
        of_all = self._allowance.refilled(1, now)
        is_enough = min(of_network.tokens, of_all.tokens) >= 1
        if is_enough:
            of_network, of_all = of_network.without_one(), of_all.without_one()
        self._allowance = of_all
        _remember(self._network_allowances, network, of_network)
        if not is_enough:
            raise TooManyUnknown


def _remember(memory: OrderedDict[K, T], name: K, value: T) -> None:
    """Put a value under a name or a network, and forget the oldest ones beyond NAMES_MAX."""
    memory.pop(name, None)
    memory[name] = value
    while len(memory) > NAMES_MAX:
        memory.popitem(last=False)
