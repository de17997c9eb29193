"""Readers of what a payload says of a person: identities, words, preferences.

They raise DecodeError that names the field.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ingest.leads.decoding import DecodeContext, DecodeError
from ingest.leads.payload_fields import thousandths
from ingest.leads.spelling import identity
from rules.leads.identity.identities import Identity
from rules.leads.language import objections_in

NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}", re.ASCII)
IDENTITIES_MAX = 20
PREFERENCES_MAX = 20
VALUE_CHARACTERS_MAX = 128


def identities(
    found: Iterable[tuple[str, Any]], context: DecodeContext, at: str, *, are_verified: bool
) -> tuple[Identity, ...]:
    """Return the identities in (channel, raw value) pairs, each once, in order, at most 20.

    are_verified: whether the source proves that they are this person's (docs/rules.md, "Who is who").
    Forms of other systems often hold values that identify nobody, such as an empty text or `n/a`. These are
    left out. Raises DecodeError that names the field `at` if nothing is left.
    """
    usable: dict[Identity, None] = {}
    for channel, raw in found:
        try:
            usable.setdefault(_identity(channel, raw, context, is_verified=are_verified))
        except ValueError:
            continue
    if not usable:
        raise DecodeError(at, "has no usable identity")
    return tuple(usable)[:IDENTITIES_MAX]


def strict_identities(
    given: Mapping[str, Any], context: DecodeContext, at: str, claimed: Collection[str] = ()
) -> tuple[Identity, ...]:
    """Read {channel: id or [ids]}; raises DecodeError for the first bad id, for none, or for more than 20.

    claimed: the channels whose ids nobody has proven. All others are verified.
    """
    found: dict[Identity, None] = {}
    for channel, ids in given.items():
        for raw in ids if isinstance(ids, list) else [ids]:
            try:
                found.setdefault(_identity(channel, raw, context, is_verified=channel not in claimed))
            except ValueError as error:
                raise DecodeError(f"{at}.{channel}"[:100], str(error)[:200]) from None
    if not 1 <= len(found) <= IDENTITIES_MAX:
        raise DecodeError(at, f"must hold 1 to {IDENTITIES_MAX} identities")
    return tuple(found)


def _identity(channel: str, raw: Any, context: DecodeContext, *, is_verified: bool) -> Identity:
    if type(raw) not in (str, int):
        raise ValueError("must be text or a whole number")
    where = (context.organization_id, context.integration)
    return identity(channel, str(raw), *where, is_verified=is_verified, region=context.region)


def derived_from_text(
    text: Any, sentiment: Any = None, objections: Any = None, preferences: Any = None
) -> dict[str, Any]:
    """Return what we derive from a person's words, without the words.

    sentiment (-1 to 1), objections, preferences: what the integration says. Without a score there is none.
    """
    read = objections_in(text if isinstance(text, str) else "")
    topics = topics_of(objections) if objections is not None else list(read)
    milli = None if sentiment is None else thousandths(sentiment, "sentiment")
    derived = {
        "sentiment_milli": milli,
        "objections": topics or None,
        "preferences": preferences_of(preferences) if preferences is not None else None,
    }
    return {name: value for name, value in derived.items() if value is not None and value != {}}


def topics_of(value: Any, name: str = "objections") -> list[str]:
    """Read a list of at most 20 topics; returns each once, sorted by name."""
    if not isinstance(value, list) or len(value) > PREFERENCES_MAX:
        raise DecodeError(name, f"must be a list of at most {PREFERENCES_MAX} topics")
    for topic in value:
        if not isinstance(topic, str) or NAME.fullmatch(topic) is None:
            raise DecodeError(name, "must hold names: lower case letters, digits, _ . -")
    return sorted(set(value))


def preferences_of(value: Any, name: str = "preferences") -> dict[str, Any]:
    """Read {name: value} with at most 20 names; a value is a short text, a whole number or a flag."""
    if not isinstance(value, dict) or len(value) > PREFERENCES_MAX:
        raise DecodeError(name, f"must be an object of at most {PREFERENCES_MAX} names")
    for key, each in value.items():
        if NAME.fullmatch(key) is None:
            raise DecodeError(name, "must have names of lower case letters, digits, _ . -")
        if type(each) not in (str, int, bool) or len(str(each)) > VALUE_CHARACTERS_MAX:
            reason = f"must be text of at most {VALUE_CHARACTERS_MAX} characters, a whole number or a flag"
            raise DecodeError(f"{name}.{key}", reason)
    return value
