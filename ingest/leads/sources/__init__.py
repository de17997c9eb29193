"""The sources of lead events. One file reads one integration's format; a file in this folder is registered.

A source's file has

    decode(payload, context) -> list[DecodedEvent]
        It is pure: the same payload always gives the same events. payload: any JSON. It returns [] for a
        payload without an event of ours, and raises ingest.leads.readers.DecodeError.
    parts(payload) -> iterable of PayloadPart   (only if a webhook can carry several events)
        It splits a payload into pieces of one event. `decode` reads each piece by itself, so that a bad
        event does not affect the others, and names fields from the event on. It raises DecodeError if it
        cannot split the payload.
    join(payloads) -> payload   (only with `parts`)
        It makes one payload of the payloads of several parts. A long webhook goes on the queue in pieces.
    SIGNATURE: Signature | None
        How its webhooks are signed (rules.leads.webhook_signatures), for the door /v1/hooks. None: not at
        all.
    TOPIC_HEADER: str   (only if a header says what kind of webhook it is; `context.topic` has its value)
    challenge(query) -> (token, what to answer), or None   (only if the vendor asks before it sends)
    from_browser(fields) -> payload   (only if browsers send it as a form)

Only these files know an integration's format. They share ingest/leads/readers.py and what it imports.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ingest.leads.readers import DecodeContext, DecodedEvent, PayloadPart
from rules.leads.webhook_signatures import Signature


def _one_part(payload: Any) -> Iterable[PayloadPart]:
    return [PayloadPart(payload)]


def _only_part(payloads: list[Any]) -> Any:
    (payload,) = payloads
    return payload


@dataclass(frozen=True, slots=True)
class Source:
    """What a source's file offers, as said above; without `parts` a whole payload is one part."""

    decode: Callable[[Any, DecodeContext], list[DecodedEvent]]
    signature: Signature | None
    parts: Callable[[Any], Iterable[PayloadPart]] = _one_part
    join: Callable[[list[Any]], Any] = _only_part
    topic_header: str = ""
    challenge: Callable[[Mapping[str, str]], tuple[str, str] | None] | None = None
    from_browser: Callable[[Mapping[str, str]], dict[str, Any]] | None = None


@cache
def names() -> list[str]:
    """Return the names of all sources, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


@cache
def source_named(name: str) -> Source:
    """Return a source; raises KeyError if there is none of this name."""
    if name not in names():
        raise KeyError(name)
    module = importlib.import_module(f"{__name__}.{name}")
    optional = {
        "parts": "parts",
        "join": "join",
        "topic_header": "TOPIC_HEADER",
        "challenge": "challenge",
        "from_browser": "from_browser",
    }
    offered = {name: getattr(module, its) for name, its in optional.items() if hasattr(module, its)}
    return Source(module.decode, module.SIGNATURE, **offered)
