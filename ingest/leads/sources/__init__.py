"""Where leads' events come from: one file a source, registered by being here.

A source's file has

    decode(payload, context) -> list[DecodedEvent]
        pure: the same payload always gives the same events; [] for what is none of our events;
        raises ingest.leads.decoding.DecodeError. payload: any JSON.
    parts(payload) -> list[PayloadPart]   (only where a webhook carries several events)
        splits a payload into pieces of one event, each of which `decode` takes by itself, so that a
        bad one does not spoil its neighbours; raises DecodeError where there is nothing to split.

Decoders are the only place that knows an integration's format. What they
share is in decoding.py, payload_fields.py and person_fields.py.
"""

import importlib
import pkgutil
from functools import cache
from typing import Any, Protocol

from ingest.leads.decoding import DecodeContext, DecodedEvent, PayloadPart


class Source(Protocol):
    """A source's file, as its users see it."""

    def parts(self, payload: Any) -> list[PayloadPart]:
        """Split a payload into pieces of one event; raises DecodeError."""

    def decode(self, payload: Any, context: DecodeContext) -> list[DecodedEvent]:
        """Read a payload's events; raises DecodeError."""


class _Module:
    """A source by its module."""

    def __init__(self, name: str) -> None:
        module = importlib.import_module(f"{__name__}.{name}")
        self.decode = module.decode
        self.parts = getattr(module, "parts", lambda payload: [PayloadPart(payload)])


@cache
def names() -> list[str]:
    """Return the sources there are."""
    return sorted(each.name for each in pkgutil.iter_modules(__path__))


@cache
def source_named(name: str) -> Source:
    """Return a source; raises KeyError for one that there is not."""
    if name not in names():
        raise KeyError(name)
    return _Module(name)
