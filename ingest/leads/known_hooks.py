"""The hooks that one process remembers, and how many requests that fit no hook it examines."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from adapters.leads.hook_store import HookStore, NoHook
from adapters.logs import Logger
from adapters.platform.aws import Unavailable
from adapters.platform.limits import network_of
from rules.leads.hooks import Hook

# The docstring of KnownHooks gives the reasons for these.
CACHE_SECONDS = 60.0  # a hook is remembered for so long
REREAD_SECONDS = 2.0  # a request that does not fit makes a process read its hook again, once in this time
LIST_SECONDS = 60.0  # the list of names is remembered for so long
NAMES_MAX = 1_000  # names that a process remembers
STRANGERS_PER_SECOND, STRANGERS_BURST = 5.0, 20.0  # the allowance of all senders together, in requests
SHARE_OF_ADDRESS = 1 / 4  # of the allowance
HookName = tuple[str, str]  # organization, source
K = TypeVar("K")
T = TypeVar("T")
logger = Logger(service="hooks-api")


class TooManyUnknown(RuntimeError):
    """So many requests have fitted no hook that this one is not examined now."""


class KnownHooks:
    """What one process remembers of hooks, so that it reads Secrets Manager about once a minute for each.

    A hook is remembered for a minute. It is read again sooner if a request does not fit what is remembered,
    at most once in two seconds. So a new secret is valid two seconds after it was stored, and `streakline
    hook` prints it only then.

    Anybody may ask for hooks that do not exist, under as many names as they like. So once a minute a process
    lists the names of all hooks. A hook on that list is read at once, whatever else comes.

    A request that fits no hook of its name spends one of an *allowance*, which grows by a few a second. It
    does so whether a hook of that name exists or not. When the allowance is used up, all such requests get
    the answer to try again: nobody learns which hooks exist. An address, or a network of IPv6, has a quarter
    of the allowance at most, so one sender cannot use up all of it.

    Within the allowance a name that is not on the list is looked up, too, because the list may be some
    minutes behind a new hook. The newest thousand of these names are remembered.
    """

    def __init__(self, store: HookStore, clock: Callable[[], float]) -> None:
        """clock: returns seconds, and never goes back."""
        self._store, self._clock = store, clock
        self._hooks = OrderedDict[HookName, _CachedHook]()  # hooks that exist
        self._strangers = OrderedDict[HookName, _CachedHook]()  # names without a hook
        # By name, the instant at which a request that fitted no hook was last examined
        self._misfits = OrderedDict[HookName, float]()
        self._listed_names, self._listed_at = frozenset[HookName](), -LIST_SECONDS
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

    def _is_listed(self, name: HookName) -> bool:
        if self._clock() - self._listed_at >= LIST_SECONDS:
            self._listed_at = self._clock()
            try:
                self._listed_names = frozenset(self._store.names())
            except Unavailable:
                logger.exception("the list of hooks stays as it was")
        return name in self._listed_names

    def _read(self, name: HookName) -> Hook | None:
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


def _remember(memory: OrderedDict[K, T], name: K, value: T) -> None:
    """Put a value under a name or a network, and forget the oldest ones beyond NAMES_MAX."""
    memory.pop(name, None)
    memory[name] = value
    while len(memory) > NAMES_MAX:
        memory.popitem(last=False)
