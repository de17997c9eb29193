"""What one process remembers of hooks, so that it reads Secrets Manager about once a minute for each.

A hook is remembered for a minute. It is read again sooner if a request does not fit what is remembered, at
most once in two seconds: so a new secret is valid two seconds after it was stored, and `streakline hook`
tells it only then.

Anybody may ask for hooks that do not exist, under as many names as they like. Of these names the newest
thousand are remembered, and only a few a second are looked up. Beyond that, a hook that this process has not
seen yet must wait: its sender is told to try again.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from adapters.leads.hooks.hook_store import HookStore, NoHook
from rules.leads.hooks.hook import Hook

KEPT_SECONDS = 60.0
REREAD_SECONDS = 2.0
NAMES_MAX = 1_000
STRANGERS_PER_SECOND, STRANGERS_BURST = 5.0, 20.0
Name = tuple[str, str]  # organization, source


class TooManyUnknown(RuntimeError):
    """So many unknown hooks have been asked for that this name is not looked up now."""


@dataclass(frozen=True, slots=True)
class _Read:
    """hook: None if there was none. at: seconds of a clock that never goes back."""

    hook: Hook | None
    at: float


class KnownHooks:
    """clock: returns seconds, and never goes back."""

    def __init__(self, store: HookStore, clock: Callable[[], float]) -> None:
        self._store, self._clock = store, clock
        self._hooks, self._strangers = OrderedDict[Name, _Read](), OrderedDict[Name, _Read]()
        self._allowance, self._allowed_at = STRANGERS_BURST, clock()

    def get(self, organization_id: str, source: str) -> Hook | None:
        """Return a hook as it was at most a minute ago; None if there was none. Raises TooManyUnknown."""
        return self._within((organization_id, source), KEPT_SECONDS)

    def again(self, organization_id: str, source: str) -> Hook | None:
        """Return a hook as it was at most two seconds ago; None if there was none. Raises TooManyUnknown."""
        return self._within((organization_id, source), REREAD_SECONDS)

    def _within(self, name: Name, seconds: float) -> Hook | None:
        known = self._hooks.get(name) or self._strangers.get(name)
        if known is None or self._clock() - known.at >= seconds:
            known = self._read(name)
        return known.hook

    def _read(self, name: Name) -> _Read:
        if name not in self._hooks:
            self._spend_allowance()
        try:
            hook = self._store.get(*name)
        except NoHook:
            hook = None
        self._hooks.pop(name, None)
        self._strangers.pop(name, None)
        read = _Read(hook, self._clock())
        kept = self._strangers if hook is None else self._hooks
        kept[name] = read
        while len(kept) > NAMES_MAX:
            kept.popitem(last=False)
        return read

    def _spend_allowance(self) -> None:
        now = self._clock()
        grown = self._allowance + (now - self._allowed_at) * STRANGERS_PER_SECOND
        self._allowance, self._allowed_at = min(STRANGERS_BURST, grown), now
        if self._allowance < 1:
            raise TooManyUnknown
        self._allowance -= 1
