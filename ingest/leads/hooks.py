"""Authenticates requests to hooks, the addresses at which an organization's vendors and pages send leads.

hooks_api.py reads a HookRequest, and asks HookAuthenticator, at the end, which hook it may use. An unknown
hook and a wrong secret get the same 401. KnownHooks remembers hooks, so that few requests read Secrets
Manager. rules/leads/webhook_signatures.py checks HMAC. ECDSA is checked here: it needs the library
`cryptography`, which only the hooks' layer contains.
"""

import base64
import binascii
import hmac
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_der_public_key

from adapters.hook_store import HookStore, NoHook
from adapters.logs import Logger
from adapters.platform.aws import Unavailable
from adapters.platform.limits import network_of
from ingest.leads import sources
from ingest.leads.sources import Source
from ingest.web.bodies import coding_of, read_body
from ingest.web.caller import ApiError
from ingest.web.json_schema import ORGANIZATION
from ingest.web.validate import first_problem
from rules.hooks import Hook
from rules.leads.webhook_signatures import (
    Algorithm,
    SignedDelivery,
    challenge_token,
    hmac_check,
    is_fresh,
    is_signed,
    read_delivery,
)

CACHE_SECONDS = 60.0  # how long a process remembers a hook, and the list of all hooks' names
REREAD_SECONDS = 2.0  # for requests that do not fit, a process reads a hook again once in this time
NAMES_MAX = 1_000  # hooks, and networks of senders, that a process remembers
# The token bucket of all senders together fills by so many requests a second, and holds so many. A network's
# own bucket is a quarter of it.
STRANGERS_PER_SECOND, STRANGERS_BURST = 5.0, 20.0
SHARE_OF_NETWORK = 1 / 4
NULL_ORIGIN = "null"  # what a browser writes in place of an origin that it hides
NULL_REASON = (
    "the browser hides which page it is (Origin: null): the page's referrer policy is no-referrer or"
    " same-origin, or it is a file or in a sandboxed frame. Let the page have the policy"
    " strict-origin-when-cross-origin"
)
EVERYBODY = ""  # the key of the bucket of all senders
HookName = tuple[str, str]  # organization, source
K = TypeVar("K")
T = TypeVar("T")
logger = Logger(service="hooks-api")


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
    """Read a request of the gateway; raises 400, and 415 for a compressed body."""
    headers = {name.lower(): str(value) for name, value in (event.get("headers") or {}).items()}
    body = read_body(event)
    if coding_of(event):  # what was signed, the compressed bytes or the others, vendors do not say
        raise ApiError(415, "unsupported_media_type", "a compressed body is not taken here")
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


def public_key(text: str) -> ec.EllipticCurvePublicKey:
    """Read a public key (SubjectPublicKeyInfo in DER, base64); raises ValueError."""
    try:
        key = load_der_public_key(base64.b64decode(text, validate=True))
    except (ValueError, TypeError, binascii.Error, UnsupportedAlgorithm):
        raise ValueError("is no public key in DER, base64") from None
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise ValueError("is the public key of another algorithm than ECDSA")  # noqa: TRY004 (a key, but not ours)
    return key


def ecdsa_check(message: bytes, signature: bytes, key_text: str) -> bool:
    """Return whether a signature (DER) over SHA-256 fits a public key; raises as public_key()."""
    try:
        public_key(key_text).verify(signature, message, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


class Memory(OrderedDict[K, T]):
    """The newest NAMES_MAX values that were set, by key."""

    def __setitem__(self, key: K, value: T) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > NAMES_MAX:
            self.popitem(last=False)


@dataclass(slots=True)
class TokenBucket:
    """How many requests a bucket held at an instant."""

    requests: float
    at: float  # seconds of the process's clock


class StrangerBuckets:
    """Limits how many requests that fit no hook are examined.

    Anybody may ask for hooks that do not exist, under as many names as they like. So each such request takes
    one from a token bucket of all senders, and one from that of its network.
    """

    def __init__(self) -> None:
        self._buckets = Memory[str, TokenBucket]()  # by network, or EVERYBODY

    def take(self, network: str, now: float) -> None:
        """Take one request from both buckets; if one of them is empty, take none, and raise 503."""
        buckets = [self._filled(network, SHARE_OF_NETWORK, now), self._filled(EVERYBODY, 1.0, now)]
        if min(bucket.requests for bucket in buckets) < 1:
            raise ApiError(503, "unavailable", "try again", headers={"Retry-After": "5"})
        for bucket in buckets:
            bucket.requests -= 1

    def _filled(self, sender: str, share: float, now: float) -> TokenBucket:
        """Return the bucket of a network, or of EVERYBODY, with what has come into it until now."""
        bucket = self._buckets.get(sender) or TokenBucket(STRANGERS_BURST * share, now)
        refill = (now - bucket.at) * STRANGERS_PER_SECOND * share
        bucket.requests, bucket.at = min(STRANGERS_BURST * share, bucket.requests + refill), now
        self._buckets[sender] = bucket
        return bucket


class RememberedHook(NamedTuple):
    """A hook as it was read."""

    hook: Hook | None  # None: there was none
    read_at: float  # seconds of the process's clock


NEVER_READ = RememberedHook(None, -CACHE_SECONDS)


class KnownHooks:
    """What one process remembers of hooks, so that it reads Secrets Manager about once a minute for each.

    A hook is read again sooner if a request does not fit what is remembered, at most once in two seconds. So
    a new secret is valid two seconds after it was stored, and `streakline hook` prints it only then.

    A *stranger* is a request that fits no remembered hook. If there are too many strangers, each is told to
    try again, whether its hook exists or not. A hook on the list of names is read before that, so strangers
    delay no request that fits it. The list is read once a minute. It may lack a new hook, which is found as
    long as there are few strangers.
    """

    def __init__(self, store: HookStore, clock: Callable[[], float]) -> None:
        """clock: returns seconds, and never goes back."""
        self._store, self._clock = store, clock
        self._hooks = Memory[HookName, RememberedHook]()
        self._listed_names, self._listed_at = frozenset[HookName](), -CACHE_SECONDS
        # By name, when a request that fitted no hook was last examined
        self._examined_at = Memory[HookName, float]()
        self._strangers = StrangerBuckets()

    def fitting_hook(self, name: HookName, address: str, fits: Callable[[Hook], bool]) -> Hook | None:
        """Return the hook of a name if it fits a request: as it is remembered, or else as it is now.

        address: of the sender. Raises 503 if too many requests of its network, or of all, fit no hook.
        """
        # 1. The remembered hook. After a minute it is read again, if it was there or is listed.
        hook, read_at = self._hooks.get(name, NEVER_READ)
        if self._clock() - read_at >= CACHE_SECONDS and (hook or self._is_listed(name)):
            hook, read_at = self._read(name)
        if hook and fits(hook):
            return hook
        # 2. A stranger. A name takes from the buckets once in two seconds, because it is read no more often.
        now = self._clock()
        if now - self._examined_at.get(name, -REREAD_SECONDS) >= REREAD_SECONDS:
            self._strangers.take(network_of(address), now)
            self._examined_at[name] = now
        # 3. The hook as it is now. If it was just read, that would be the same one.
        if now - read_at < REREAD_SECONDS:
            return None
        hook, _ = self._read(name)
        return hook if hook and fits(hook) else None

    def _is_listed(self, name: HookName) -> bool:
        if self._clock() - self._listed_at >= CACHE_SECONDS:
            self._listed_at = self._clock()
            try:
                self._listed_names = frozenset(self._store.names())
            except Unavailable:
                logger.exception("the list of hooks stays as it was")
        return name in self._listed_names

    def _read(self, name: HookName) -> RememberedHook:
        hook: Hook | None = None
        with suppress(NoHook):
            hook = self._store.get(*name)
        self._hooks[name] = RememberedHook(hook, self._clock())
        return self._hooks[name]


@dataclass(frozen=True, slots=True)
class HookAuthenticator:
    """Finds the hook that a request may use. Each method raises 401, or 503 for a caller to try again."""

    known_hooks: KnownHooks

    def authenticate_webhook(
        self, name: HookName, request: HookRequest, now: datetime
    ) -> tuple[Hook, Source, SignedDelivery]:
        """Return the hook whose secret signed a request, its source, and the signed message."""
        source = _source(name)
        scheme = source.signature
        delivery = read_delivery(scheme, request.headers, request.body) if scheme else None
        if scheme is None or delivery is None or not is_fresh(delivery, now):
            raise hook_refusal()
        check = ecdsa_check if scheme.algorithm is Algorithm.ECDSA_SHA256 else hmac_check(scheme)
        hook = self._fitting_hook(name, request, lambda hook: is_signed(delivery, hook.valid(now), check))
        return hook, source, delivery

    def authenticate_form(self, name: HookName, request: HookRequest) -> tuple[Hook, Source]:
        """Return the hook that takes forms of the page that sent a request, and its source.

        A page that hides its origin is told so, whether there is such a hook or not.
        """
        source, origin = _source(name), origin_of(request.headers)
        if source.from_browser is None:
            raise hook_refusal()
        if origin == NULL_ORIGIN:
            raise ApiError(401, "unauthorized", NULL_REASON, headers={"Access-Control-Allow-Origin": "null"})
        return self._fitting_hook(name, request, lambda hook: origin in hook.origins), source

    def answer_challenge(
        self, name: HookName, request: HookRequest, query: Mapping[str, str], now: datetime
    ) -> str:
        """Return the text that a vendor wants to read back before it sends webhooks."""
        read_challenge = _source(name).challenge
        challenge = read_challenge(query) if read_challenge else None
        if challenge is None:
            raise hook_refusal()
        token, reply = challenge

        def fits(hook: Hook) -> bool:
            valid_tokens = (challenge_token(secret).encode() for secret in hook.valid(now))
            return any(hmac.compare_digest(valid, token.encode()) for valid in valid_tokens)

        self._fitting_hook(name, request, fits)
        return reply

    def _fitting_hook(self, name: HookName, request: HookRequest, fits: Callable[[Hook], bool]) -> Hook:
        organization, _ = name
        if first_problem({"type": "string", "pattern": ORGANIZATION}, organization):
            raise hook_refusal()
        hook = self.known_hooks.fitting_hook(name, request.address, fits)
        if hook is None:
            raise hook_refusal()
        return hook


def _source(name: HookName) -> Source:
    _, source = name
    if source not in sources.names():
        raise hook_refusal()
    return sources.source_named(source)
