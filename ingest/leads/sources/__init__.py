"""The sources of lead events. One file reads one integration's format; a file in this folder is registered.

A source's file has

    decode(payload, context) -> list[DecodedEvent]
        It is pure: the same payload always gives the same events. payload: any JSON. It returns [] for a
        payload without an event of ours, and raises ingest.leads.payloads.DecodeError.
    parts(payload) -> iterable of PayloadPart   (only if a webhook can carry several events)
        It splits a payload into pieces of one event. `decode` reads each piece by itself, so that a bad
        event does not affect the others. It raises DecodeError if it cannot split the payload.

    SIGNATURE: Signature | None
        How its webhooks are signed (rules.leads.hooks), for the door /v1/hooks. None: they are
        not.
    TOPIC_HEADER: str   (only if a header says what kind of webhook it is; `context.topic` has its value)
    challenge(query) -> (token, what to answer), or None   (only if the vendor asks before it sends)
    from_browser(fields) -> payload   (only if browsers send it as a form)

Only these files know an integration's format. They share ingest/leads/payloads.py and what it imports.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Protocol

from ingest.leads.payloads import DecodeContext, DecodedEvent, PayloadPart
from rules.leads.hooks import Signature

FromBrowser = Callable[[Mapping[str, str]], dict[str, Any]]
Challenge = Callable[[Mapping[str, str]], tuple[str, str] | None]  # query -> token, what to answer


class Source(Protocol):
    """What a source's file offers."""

    @property
    def signature(self) -> Signature | None:
        """How its webhooks are signed; None: they are not."""

    @property
    def topic_header(self) -> str:
        """The header that says what kind of webhook it is; "" if none does."""

    @property
    def from_browser(self) -> FromBrowser | None:
        """Makes a payload of a form's fields; None: a browser does not send this source."""

    @property
    def challenge(self) -> Challenge | None:
        """Reads the question whether an address is ours; None: its vendor does not ask."""

    def parts(self, payload: Any) -> Iterable[PayloadPart]:
        """Split a payload into pieces of one event; raises DecodeError."""

    def decode(self, payload: Any, context: DecodeContext) -> list[DecodedEvent]:
        """Read a payload's events; raises DecodeError."""


class _Module:
    """A source's file. If it has no `parts`, the whole payload is one part."""

    def __init__(self, name: str) -> None:
        module = importlib.import_module(f"{__name__}.{name}")
        self.decode = module.decode
        self.signature: Signature | None = module.SIGNATURE
        self.topic_header: str = getattr(module, "TOPIC_HEADER", "")
        self.from_browser: FromBrowser | None = getattr(module, "from_browser", None)
        self.challenge: Challenge | None = getattr(module, "challenge", None)
        self.parts = getattr(module, "parts", lambda payload: [PayloadPart(payload)])


@cache
def names() -> list[str]:
    """Return the names of all sources, sorted."""
    return sorted(each.name for each in pkgutil.iter_modules(__path__))


@cache
def source_named(name: str) -> Source:
    """Return a source; raises KeyError if there is none of this name."""
    if name not in names():
        raise KeyError(name)
    return _Module(name)
