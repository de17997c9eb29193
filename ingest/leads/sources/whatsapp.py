"""WhatsApp Business Cloud API: messages that people sent to a business number.

https://developers.facebook.com/docs/whatsapp/cloud-api/webhooks/payload-examples
A webhook holds any number of messages under entry[].changes[].value.messages[]. It may also tell the status
of messages that the business sent; these are no events of ours. `sentiment` on a message is our extension.
WhatsApp proves its senders: `from` is verified. It is an international number without its plus sign.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ingest.leads.decoding import DecodeContext, DecodedEvent, DecodeError, PayloadPart
from ingest.leads.payload_fields import epoch, text_id
from ingest.leads.person_fields import derived_from_text, identities
from rules.leads.lead_events import MESSAGE_RECEIVED
from rules.leads.webhook_signatures import Signature

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
    return (PayloadPart(_around(message), path, FIRST) for path, message in _messages(payload))


def decode(payload: Any, context: DecodeContext) -> list[DecodedEvent]:
    """Read all messages."""
    read = (_message(path, message, context) for path, message in _messages(payload))
    return [event for event in read if event]


FIRST = "entry.0.changes.0.value.messages.0"


def _around(message: Any) -> dict[str, Any]:
    return {"entry": [{"changes": [{"field": "messages", "value": {"messages": [message]}}]}]}


def _messages(payload: Any) -> Iterator[tuple[str, Any]]:
    for entry_path, entry in _each(payload, "", "entry"):
        for change_path, change in _each(entry, entry_path, "changes"):
            value = change.get("value")
            if change.get("field", "messages") != "messages":
                continue
            if not isinstance(value, Mapping):
                raise DecodeError(f"{change_path}value", "must be an object")
            if "messages" in value:
                yield from (
                    (path.rstrip("."), each)
                    for path, each in _each(value, f"{change_path}value.", "messages")
                )


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
        sender = text_id(message.get("from"), "from")
        return DecodedEvent(
            external_event_id=text_id(message.get("id"), "id"),
            event_type=MESSAGE_RECEIVED,
            occurred_at=epoch(message.get("timestamp"), "timestamp"),
            identities=identities(
                [("phone", "+" + sender.removeprefix("+"))], context, "from", are_verified=True
            ),
            object_id=text_id(message.get("id"), "id"),
            object_id_ref="message",
            payload=derived_from_text(_words(message), message.get("sentiment")),
        )
    except DecodeError as error:
        raise DecodeError(f"{path}.{error.field}", error.reason) from None


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
