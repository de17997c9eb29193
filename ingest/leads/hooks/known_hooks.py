"""What one process remembers of hooks, so that it reads Secrets Manager about once a minute for each.

A hook is remembered for a minute. It is read again sooner if a request does not fit what is remembered, at
most once in two seconds: so a new secret is valid two seconds after it was stored, and `streakline hook`
tells it only then.

Anybody may ask for hooks that do not exist, under as many names as they like. So a process lists the names
that there are, once a minute: a hook on that list is read at once, whatever else comes. A request that fits
no hook of its name costs one of an allowance that grows by a few a second, whether there is a hook of that
name or not. When it is used up, all of them are told to try again: nobody learns which hooks there are. An
address, or a network of IPv6, has a quarter of it at most: so one sender takes nobody else's.
Within the allowance a name that is not on the list is looked up, too, because the list may be some minutes
behind a new hook. Of these names the newest thousand are remembered.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from adapters.leads.hook_store import HookStore, NoHook
from adapters.logs import Logger
from adapters.platform.aws import Unavailable
from adapters.platform.limits import network_of
from rules.leads.hooks import Hook

KEPT_SECONDS = 60.0
REREAD_SECONDS = 2.0
LISTED_SECONDS = 60.0
NAMES_MAX = 1_000
STRANGERS_PER_SECOND, STRANGERS_BURST = 5.0, 20.0
SHARE_OF_ADDRESS = 1 / 4
Name = tuple[str, str]  # organization, source
K = TypeVar("K")
T = TypeVar("T")

logger = Logger(service="hooks-api")


class TooManyUnknown(RuntimeError):
    """So many requests fitted no hook that this one is not looked into now."""


@dataclass(frozen=True, slots=True)
class _Read:
    """hook: None if there was none. at: seconds of a clock that never goes back."""

    hook: Hook | None
    at: float


@dataclass(frozen=True, slots=True)
class _Allowance:
    """How many requests may be looked into. at: when that was so, by the clock."""

    left: float
    at: float

    def grown(self, share: float, now: float) -> "_Allowance":
        """Return it as it is now. share: of what all senders together have."""
        grown = self.left + (now - self.at) * STRANGERS_PER_SECOND * share
        return _Allowance(min(STRANGERS_BURST * share, grown), now)

    def spent(self) -> "_Allowance":
        """Return it with one request less."""
        return _Allowance(self.left - 1, self.at)


class KnownHooks:
    """clock: returns seconds, and never goes back."""

    def __init__(self, store: HookStore, clock: Callable[[], float]) -> None:
        self._store, self._clock = store, clock
        self._hooks, self._strangers = OrderedDict[Name, _Read](), OrderedDict[Name, _Read]()
        self._misfits = OrderedDict[Name, float]()  # when a request that fitted nothing was last looked into
        self._listed, self._listed_at = frozenset[Name](), -LISTED_SECONDS
        self._allowance = _Allowance(STRANGERS_BURST, clock())
        self._of_addresses = OrderedDict[str, _Allowance]()

    def get(self, organization_id: str, source: str) -> Hook | None:
        """Return a hook as it was at most a minute ago; None if none is known."""
        name = (organization_id, source)
        known = self._hooks.get(name) or self._strangers.get(name)
        if known and self._clock() - known.at < KEPT_SECONDS:
            return known.hook
        return self._read(name) if name in self._hooks or self._is_listed(name) else None

    def again(self, organization_id: str, source: str, address: str) -> Hook | None:
        """Return a hook as it was at most two seconds ago, for a request that does not fit; None: no hook.

        address: whose connection it is. Raises TooManyUnknown if the allowance is used up, its own or that of
        all. Both are spent once in two seconds for each name.
        """
        name, now = (organization_id, source), self._clock()
        if now - self._misfits.get(name, -REREAD_SECONDS) >= REREAD_SECONDS:
            self._spend_allowance(network_of(address), now)
            _keep(self._misfits, name, now)
        known = self._hooks.get(name) or self._strangers.get(name)
        return known.hook if known and now - known.at < REREAD_SECONDS else self._read(name)

    def _is_listed(self, name: Name) -> bool:
        if self._clock() - self._listed_at >= LISTED_SECONDS:
            self._listed_at = self._clock()
            try:
                self._listed = frozenset(self._store.names())
            except Unavailable:
                logger.exception("the list of hooks stays as it was")
        return name in self._listed

    def _read(self, name: Name) -> Hook | None:
        try:
            hook = self._store.get(*name)
        except NoHook:
            hook = None
        self._hooks.pop(name, None)
        self._strangers.pop(name, None)
        _keep(self._strangers if hook is None else self._hooks, name, _Read(hook, self._clock()))
        return hook

    def _spend_allowance(self, network: str, now: float) -> None:
        own = self._of_addresses.get(network) or _Allowance(STRANGERS_BURST * SHARE_OF_ADDRESS, now)
        own, of_all = own.grown(SHARE_OF_ADDRESS, now), self._allowance.grown(1, now)
        is_enough = min(own.left, of_all.left) >= 1
        self._allowance = of_all.spent() if is_enough else of_all
        _keep(self._of_addresses, network, own.spent() if is_enough else own)
        if not is_enough:
            raise TooManyUnknown


def _keep(kept: OrderedDict[K, T], name: K, value: T) -> None:
    """Remember something of a name or a network, and forget the oldest ones beyond so many."""
    kept.pop(name, None)
    kept[name] = value
    while len(kept) > NAMES_MAX:
        kept.popitem(last=False)
