"""Readers of what a payload says of a person: identities, words, preferences.

An event must have somebody: `identities` and `strict_identities` raise DecodeError that names the field. All
else is a side field (payload_fields.SideFields): what cannot be read is left out.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ingest.leads.decoding import DecodeContext, DecodeError
from ingest.leads.payload_fields import SideFields, number_as_text, thousandths
from ingest.leads.spelling import identity
from rules.leads.identity import Identity
from rules.leads.language import objections_in

NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}", re.ASCII)
IDENTITIES_MAX = 20
PREFERENCES_MAX = 20
VALUE_CHARACTERS_MAX = 128
REASON_CHARACTERS_MAX = 200


def identities(
    found: Iterable[tuple[str, Any]],
    context: DecodeContext,
    at: str,
    *,
    are_verified: bool,
    side: SideFields | None = None,
) -> tuple[Identity, ...]:
    """Return the identities in (channel, raw value) pairs as `usable_identities` does.

    Raises DecodeError that names the field `at` if there are none.
    """
    usable = usable_identities(found, context, at, are_verified=are_verified, side=side)
    if not usable:
        raise DecodeError(at, "has no usable identity")
    return usable


def usable_identities(
    found: Iterable[tuple[str, Any]],
    context: DecodeContext,
    at: str,
    *,
    are_verified: bool,
    side: SideFields | None = None,
) -> tuple[Identity, ...]:
    """Return the identities in (channel, raw value) pairs, each once, in order, at most 20.

    are_verified: whether the source proves that they are this person's (docs/rules.md, "Who is who").
    Other systems often send values that identify nobody, such as an empty text or `n/a`. These are left out,
    and side notes them under `at`.
    """
    side, usable = side or SideFields(), dict[Identity, None]()
    for channel, raw in found:
        if raw is None or raw == "":
            continue
        try:
            usable.setdefault(_identity(channel, raw, context, is_verified=are_verified))
        except ValueError as error:
            side.omit(f"{at}.{channel}", str(error)[:REASON_CHARACTERS_MAX])
    return tuple(usable)[:IDENTITIES_MAX]


def strict_identities(
    given: Mapping[str, Any], context: DecodeContext, at: str, claimed: Collection[str], side: SideFields
) -> tuple[Identity, ...]:
    """Read {channel: id or [ids]}; raises DecodeError if no id is good, or more than 20 are.

    claimed: the channels whose ids nobody has proven. All others are verified. side: notes the bad ids beside
    a good one.
    """
    found, bad = dict[Identity, None](), list[tuple[str, str]]()
    for channel, ids in given.items():
        for raw in ids if isinstance(ids, list) else [ids]:
            try:
                found.setdefault(_identity(channel, raw, context, is_verified=channel not in claimed))
            except ValueError as error:
                bad.append((f"{at}.{channel}"[:100], str(error)[:REASON_CHARACTERS_MAX]))
    if bad and not found:
        raise DecodeError(*bad[0])
    if not 1 <= len(found) <= IDENTITIES_MAX:
        raise DecodeError(at, f"must hold 1 to {IDENTITIES_MAX} identities")
    for name, reason in bad:
        side.omit(name, reason)
    return tuple(found)


def _identity(channel: str, raw: Any, context: DecodeContext, *, is_verified: bool) -> Identity:
    text = number_as_text(raw)
    if not isinstance(text, str):
        raise ValueError("must be text or a whole number")  # noqa: TRY004 (a sender's fault)
    where = (context.organization_id, context.integration)
    return identity(channel, text, *where, is_verified=is_verified, region=context.region)


def derived_from_text(
    text: Any,
    sentiment: Any = None,
    objections: Any = None,
    preferences: Any = None,
    side: SideFields | None = None,
) -> dict[str, Any]:
    """Return what we derive from a person's words, without the words. Nothing of it can refuse an event.

    sentiment (-1 to 1), objections, preferences: what the integration says. Without a score there is none.
    """
    side = side or SideFields()
    read = objections_in(text if isinstance(text, str) else "")
    derived = {
        "sentiment_milli": side.read(thousandths, sentiment, "sentiment"),
        "objections": (list(read) if objections is None else topics_of(objections, side)) or None,
        "preferences": preferences_of(preferences, side) or None,
    }
    return {name: value for name, value in derived.items() if value is not None}


def topics_of(value: Any, side: SideFields, name: str = "objections") -> list[str]:
    """Read topics; returns at most 20, each once, sorted by name. side: notes those that are none."""
    topics = set[str]()
    for path, topic in side.items(value, name, PREFERENCES_MAX):
        if isinstance(topic, str) and NAME.fullmatch(topic):
            topics.add(topic)
        else:
            side.omit(path, "must be a name: lower case letters, digits, _ . -")
    return sorted(topics)


def preferences_of(value: Any, side: SideFields, name: str = "preferences") -> dict[str, Any]:
    """Read {name: value}; returns at most 20. side: notes those that are none.

    A value is a short text, a whole number or a flag.
    """
    if value is None or not isinstance(value, dict):
        if value is not None:
            side.omit(name, "must be an object")
        return {}
    good: dict[str, Any] = {}
    for key, each in value.items():
        if NAME.fullmatch(key) is None:
            side.omit(name, "must have names of lower case letters, digits, _ . -")
        elif type(each) not in (str, int, bool) or len(str(each)) > VALUE_CHARACTERS_MAX:
            reason = f"must be text of at most {VALUE_CHARACTERS_MAX} characters, a whole number or a flag"
            side.omit(f"{name}.{key}", reason)
        elif len(good) == PREFERENCES_MAX:
            side.omit(name, f"has more than {PREFERENCES_MAX} names; the first ones are read")
            break
        else:
            good[key] = each
    return good
