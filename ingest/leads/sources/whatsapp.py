"""WhatsApp Business Cloud API: messages that people sent to a business number.

https://developers.facebook.com/docs/whatsapp/cloud-api/webhooks/payload-examples
A webhook holds any number of messages under entry[].changes[].value.messages[]. It may also tell the status
of messages that the business sent; these are no events of ours. `sentiment` on a message is our extension.
WhatsApp proves its senders: `from` is verified. It is an international number without its plus sign.
Somebody who writes one of the words of rules.leads.consent ("stop"), or who stops marketing messages in
WhatsApp itself (value.user_preferences[]), wants no more notifications. That is remembered for good.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ingest.leads.decoding import DecodeContext, DecodedEvent, DecodeError, PayloadPart
from ingest.leads.payload_fields import epoch, text_id
from ingest.leads.person_fields import derived_from_text, identities
from rules.leads.consent import NOTIFICATIONS, OFF, ON, consent_in
from rules.leads.hooks.signatures import Signature
from rules.leads.identity.identities import Identity
from rules.leads.lead_events import MESSAGE_RECEIVED, PREFERENCE_STATED

# https://developers.facebook.com/docs/graph-api/webhooks/getting-started: with the app's secret.
SIGNATURE = Signature("x-hub-signature-256", "sha256=", is_hex=True)

# Nobody wrote these items of the list: a changed number, a kind of message that WhatsApp does not deliver.
NOTICES = frozenset({"system", "unsupported", "unknown", "errors"})

# What Meta asks before it sends webhooks to an address: our token, and a number to read back.
CHALLENGE = re.compile(r"[ -~]{1,128}", re.ASCII)


def challenge(query: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the token that a request of Meta's has, and what to answer; None: it is no such request."""
    asked = query.get("hub.challenge", "")
    if query.get("hub.mode") != "subscribe" or CHALLENGE.fullmatch(asked) is None:
        return None
    return query.get("hub.verify_token", ""), asked


def parts(payload: Any) -> Iterator[PayloadPart]:
    """Split a webhook into its messages."""
    return (
        PayloadPart(_around(found, kind), path, FIRST.format(kind)) for path, kind, found in _items(payload)
    )


def decode(payload: Any, context: DecodeContext) -> list[DecodedEvent]:
    """Read all messages and stated preferences."""
    read = (READERS[kind](path, found, context) for path, kind, found in _items(payload))
    return [event for event in read if event]


FIRST = "entry.0.changes.0.value.{}.0"


def _around(found: Any, kind: str) -> dict[str, Any]:
    return {"entry": [{"changes": [{"field": kind, "value": {kind: [found]}}]}]}


def _items(payload: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield (path, kind, item) of each message and each stated preference."""
    for entry_path, entry in _each(payload, "", "entry"):
        for change_path, change in _each(entry, entry_path, "changes"):
            value, kind = change.get("value"), change.get("field", "messages")
            if not isinstance(kind, str) or kind not in READERS:
                continue
            if not isinstance(value, Mapping):
                raise DecodeError(f"{change_path}value", "must be an object")
            if kind in value:
                found = _each(value, f"{change_path}value.", kind)
                yield from ((path.rstrip("."), kind, each) for path, each in found)


def _each(holder: Any, path: str, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    listed = holder.get(name) if isinstance(holder, Mapping) else None
    if not isinstance(listed, list):
        raise DecodeError(f"{path}{name}", "is missing" if listed is None else "must be a list")
    for place, each in enumerate(listed):
        if not isinstance(each, Mapping):
            raise DecodeError(f"{path}{name}.{place}", "must be an object")
        yield f"{path}{name}.{place}.", each


def _message(path: str, message: Mapping[str, Any], context: DecodeContext) -> DecodedEvent | None:
    if str(message.get("type")) in NOTICES:
        return None
    try:
        sender, words = text_id(message.get("from"), "from"), _words(message)
        return DecodedEvent(
            external_event_id=text_id(message.get("id"), "id"),
            event_type=MESSAGE_RECEIVED,
            occurred_at=epoch(message.get("timestamp"), "timestamp"),
            identities=_sender(sender, context, "from"),
            object_id=text_id(message.get("id"), "id"),
            object_id_ref="message",
            payload={**derived_from_text(words, message.get("sentiment")), **_consent(consent_in(words))},
        )
    except DecodeError as error:
        raise DecodeError(f"{path}.{error.field}", error.reason) from None


def _consent(said: Mapping[str, str]) -> dict[str, Any]:
    return {"consent": dict(said)} if said else {}


def _sender(number: str, context: DecodeContext, at: str) -> tuple[Identity, ...]:
    return identities([("phone", f"+{number.removeprefix('+')}")], context, at, are_verified=True)


def _words(message: Mapping[str, Any]) -> str:
    """Return what the sender wrote or chose; "" for a picture without a caption."""
    kind = message.get("type")
    content = message.get(kind) if isinstance(kind, str) else None
    if kind == "interactive" and isinstance(content, Mapping):
        content = content.get("button_reply") or content.get("list_reply")
    if not isinstance(content, Mapping):
        return ""
    words = (content.get(name) for name in ("body", "text", "title", "caption"))
    return next((each for each in words if isinstance(each, str)), "")


def _preference(path: str, stated: Mapping[str, Any], context: DecodeContext) -> DecodedEvent | None:
    said = {"stop": OFF, "resume": ON}.get(str(stated.get("value")))
    if stated.get("category") != "marketing_messages" or said is None:
        return None
    try:
        sender, at = text_id(stated.get("wa_id"), "wa_id"), epoch(stated.get("timestamp"), "timestamp")
        return DecodedEvent(
            external_event_id=text_id(f"preference:{sender}:{at}", "wa_id"),
            event_type=PREFERENCE_STATED,
            occurred_at=at,
            identities=_sender(sender, context, "wa_id"),
            payload=_consent({NOTIFICATIONS: said}),
        )
    except DecodeError as error:
        raise DecodeError(f"{path}.{error.field}", error.reason) from None


READERS: Mapping[str, Callable[[str, Any, DecodeContext], DecodedEvent | None]] = {
    "messages": _message,
    "user_preferences": _preference,
}
