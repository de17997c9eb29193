"""WhatsApp Business Cloud API: messages that people sent to a business number.

https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/messages
A webhook holds any number of messages under entry[].changes[].value.messages[]. A message needs its id, its
time and its sender; nothing else of it refuses it. `sentiment` on a message is our extension.

WhatsApp proves its senders: by number (`from`, without its plus sign), by an id that it has made for this
business (`from_user_id`), or both; who has a username may show the id alone. What a message lacks of that is
taken from its entry of value.contacts[]. A username is neither: it may be another person's tomorrow.
https://developers.facebook.com/documentation/business-messaging/whatsapp/business-scoped-user-ids

Who writes or chooses one of the words of rules.leads.consent ("stop"), or stops marketing messages in
WhatsApp itself (value.user_preferences[]), wants no more notifications. That is remembered for good. When a
message is changed later, nothing but that is read. Another number or id of a person is an event of its own,
and no message. No events of ours are the statuses of what the business sent (value.statuses[]), a reaction
that is taken back, a message that is revoked, and what WhatsApp does not deliver.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ingest.leads.payloads import DecodeContext, DecodedEvent, DecodeError, PayloadPart
from ingest.leads.readers import SideFields, derived_from_text, epoch, identities, text_id
from rules.json_values import read_json
from rules.leads.consent import NOTIFICATIONS, OFF, ON, consent_in, consent_in_choice
from rules.leads.hooks import Signature
from rules.leads.identity import Identity
from rules.leads.lead_events import IDENTITY_REPLACED, MESSAGE_RECEIVED, PREFERENCE_STATED

# https://developers.facebook.com/docs/graph-api/webhooks/getting-started: with the app's secret.
SIGNATURE = Signature("x-hub-signature-256", "sha256=", is_hex=True)

# Types of messages that no person wrote, or that cannot be read.
NOTICES = frozenset({"unsupported", "unknown", "errors", "revoke", "request_welcome"})

# A text that Meta wants to read back before it sends webhooks to an address.
CHALLENGE = re.compile(r"[ -~]{1,128}", re.ASCII)
# The fields of an item, or of a contact, that say whose it is. An id may be beside a number or alone; some
# partners put an id in a number's place.
NUMBERS = ("from", "wa_id")
USER_IDS = ("from_user_id", "user_id", "from_parent_user_id", "parent_user_id")
USER_ID = re.compile(r"[A-Z]{2}(\.ENT)?\.[A-Za-z0-9]+", re.ASCII)
PersonIds = dict[tuple[str, str], None]  # channel and raw value of each, once
ANSWERS_MAX = 100
TICKED = ("true", "yes", "1")


def challenge(query: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the token of a challenge of Meta's, and what to answer; None for another request."""
    text = query.get("hub.challenge", "")
    if query.get("hub.mode") != "subscribe" or CHALLENGE.fullmatch(text) is None:
        return None
    return query.get("hub.verify_token", ""), text


def parts(payload: Any) -> Iterator[PayloadPart]:
    """Split a webhook into webhooks of one item. A malformed entry or change is a part by itself."""
    for index, entry in enumerate(_required_list(payload, "entry")):
        changes = entry.get("changes") if isinstance(entry, Mapping) else None
        if not isinstance(changes, list):
            yield PayloadPart({"entry": [entry]}, f"entry.{index}", "entry.0")
            continue
        for number, change in enumerate(changes):
            path, inner = f"entry.{index}.changes.{number}", "entry.0.changes.0"
            try:
                items = list(_items_of(change))
            except DecodeError:
                yield PayloadPart({"entry": [{"changes": [change]}]}, path, inner)
                continue
            for item in items:
                inside = f"{inner}.value.{item.kind}.0"
                yield PayloadPart(_webhook_around(item), f"{path}.{item.path}", inside)


def decode(payload: Any, context: DecodeContext) -> list[DecodedEvent]:
    """Read all messages, stated preferences and changed ids of a webhook."""
    events = [
        _event(item, context)
        for entry in _required_list(payload, "entry")
        for change in _required_list(entry, "changes")
        for item in _items_of(change)
    ]
    return [event for event in events if event]


@dataclass(frozen=True, slots=True)
class _Item:
    """An item of a webhook's lists."""

    path: str  # from its change on, such as `value.messages.0`
    kind: str  # the list's name
    body: Mapping[str, Any]
    contact: Mapping[str, Any]  # its sender's entry of value.contacts[]; {}: none adds anything


def _event(item: _Item, context: DecodeContext) -> DecodedEvent | None:
    """Read an item; None if it is no event of ours."""
    if not isinstance(item.body, Mapping):
        raise DecodeError("", "must be an object")
    return READERS[item.kind](item, context)


def _webhook_around(item: _Item) -> dict[str, Any]:
    contacts = {"contacts": [item.contact]} if item.contact else {}
    return {"entry": [{"changes": [{"field": item.kind, "value": {item.kind: [item.body], **contacts}}]}]}


def _items_of(change: Any) -> Iterator[_Item]:
    """Yield the items of a change, of all kinds that we read: partners pass on several kinds in one."""
    if not isinstance(change, Mapping):
        raise DecodeError("", "must be an object")
    value, field = change.get("value"), change.get("field", "messages")
    if not isinstance(field, str) or field not in READERS:
        return
    if not isinstance(value, Mapping):
        raise DecodeError("value", "must be an object")
    contacts = _contacts(value.get("contacts"))
    for kind in READERS:
        bodies = [] if value.get(kind) is None else _required_list(value, kind, "value.")
        for index, body in enumerate(bodies):
            contact = _contact(body, contacts, is_sole=len(bodies) == 1)
            yield _Item(f"value.{kind}.{index}", kind, body, contact)


def _contacts(listed: Any) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Return the contacts by each of their ids; of two with one id the first."""
    by_id: dict[tuple[str, str], Mapping[str, Any]] = {}
    for contact in listed if isinstance(listed, list) else ():
        for id_ in _person_ids(contact) if isinstance(contact, Mapping) else ():
            by_id.setdefault(id_, contact)
    return by_id


def _contact(
    item: Any, contacts: Mapping[tuple[str, str], Mapping[str, Any]], *, is_sole: bool
) -> Mapping[str, Any]:
    """Return the contact that has further ids of an item's sender; {} if there is none.

    An item without ids gets the only contact, if it is the only item. is_sole: whether it is.
    """
    if not isinstance(item, Mapping):
        return {}
    item_ids = _person_ids(item).keys()
    candidates = [contacts[id_] for id_ in item_ids or contacts if id_ in contacts]
    if not item_ids and not (is_sole and all(candidate is candidates[0] for candidate in candidates)):
        return {}
    return next((candidate for candidate in candidates if _person_ids(candidate).keys() - item_ids), {})


def _required_list(holder: Any, name: str, path: str = "") -> list[Any]:
    """Return a list that an object must have. path: of the object, with a dot at its end."""
    if not isinstance(holder, Mapping):
        raise DecodeError(path.rstrip("."), "must be an object")
    listed = holder.get(name)
    if not isinstance(listed, list):
        raise DecodeError(f"{path}{name}", "is missing" if listed is None else "must be a list")
    return listed


def _person_ids(
    holder: Mapping[str, Any], numbers: Iterable[str] = NUMBERS, user_ids: Iterable[str] = USER_IDS
) -> PersonIds:
    """Return the ids that an object has of a person. numbers, user_ids: the names of its fields."""
    ids: PersonIds = {}
    for name in (*numbers, *user_ids):
        value = holder.get(name)
        if type(value) not in (str, int) or value == "":
            continue
        text = str(value)
        is_user_id = name in user_ids or USER_ID.fullmatch(text)
        ids["whatsapp" if is_user_id else "phone", text if is_user_id else f"+{text.lstrip('+')}"] = None
    return ids


def _message(item: _Item, context: DecodeContext) -> DecodedEvent | None:
    message = item.body
    kind = str(message.get("type"))
    if kind in NOTICES or (kind == "reaction" and not _content(message).get("emoji")):
        return None
    if kind == "system":
        return _number_change(item, context)
    if kind == "edit":
        return _edit(item, context)
    words, own_id, side = _words(message), text_id(message.get("id"), "id"), SideFields()
    return DecodedEvent(
        external_event_id=own_id,
        event_type=MESSAGE_RECEIVED,
        occurred_at=epoch(message.get("timestamp"), "timestamp"),
        identities=_sender(item, context, side),
        object_id=own_id,
        object_id_ref="message",
        payload={
            **derived_from_text(words, message.get("sentiment"), side=side),
            **_consent(_consent_of(message)),
        },
        omissions=side.omissions,
    )


def _content(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a message holds under the name of its kind."""
    kind = message.get("type")
    content = message.get(kind) if isinstance(kind, str) else None
    return content if isinstance(content, Mapping) else {}


def _consent(said: Mapping[str, str]) -> dict[str, Any]:
    return {"consent": dict(said)} if said else {}


def _sender(item: _Item, context: DecodeContext, side: SideFields) -> tuple[Identity, ...]:
    ids = _person_ids(item.body) | _person_ids(item.contact)
    at = "wa_id" if item.kind == "user_preferences" else "from"
    if not ids:
        raise DecodeError(at, "is missing, and there is no user id")
    return identities(ids, context, at, are_verified=True, side=side)


def _number_change(item: _Item, context: DecodeContext) -> DecodedEvent | None:
    """Read a system message: somebody has another number or id. None: it does not say so, or not of whom."""
    system = _content(item.body)
    if not str(system.get("type")).endswith(("changed_number", "changed_user_id")):
        return None
    previous = ("previous_user_id", "previous_parent_user_id")
    new = _person_ids(system, ("customer", "wa_id", "new_wa_id"), (*USER_IDS, *previous))
    return _replacement(item, _person_ids(item.body) | new, item.body.get("id"), context)


def _user_id_update(item: _Item, context: DecodeContext) -> DecodedEvent | None:
    """Read an entry of user_id_update[], which partners of Meta pass on: {user_id: {previous, current}}."""
    ids = _person_ids(item.body, user_ids=())
    for name in ("user_id", "parent_user_id"):
        if isinstance(change := item.body.get(name), Mapping):
            ids |= _person_ids(change, (), ("previous", "current"))
    own_id = ":".join(["user_id_update", *(value for channel, value in ids if channel == "whatsapp")])
    return _replacement(item, ids, own_id, context)


def _replacement(item: _Item, ids: PersonIds, own_id: Any, context: DecodeContext) -> DecodedEvent | None:
    """Return the event that these ids are of one person; None if there is only one."""
    if len(ids) < 2:
        return None
    side = SideFields()
    return DecodedEvent(
        external_event_id=text_id(own_id, "id"),
        event_type=IDENTITY_REPLACED,
        occurred_at=epoch(item.body.get("timestamp"), "timestamp"),
        identities=identities(ids, context, item.kind, are_verified=True, side=side),
        omissions=side.omissions,
    )


def _edit(item: _Item, context: DecodeContext) -> DecodedEvent | None:
    message = _content(item.body).get("message")
    said = _consent_of(message) if isinstance(message, Mapping) else {}
    return _statement(item, item.body.get("id"), said, context) if said else None


def _statement(item: _Item, own_id: Any, said: Mapping[str, str], context: DecodeContext) -> DecodedEvent:
    side = SideFields()
    return DecodedEvent(
        external_event_id=text_id(own_id, "id"),
        event_type=PREFERENCE_STATED,
        occurred_at=epoch(item.body.get("timestamp"), "timestamp"),
        identities=_sender(item, context, side),
        payload=_consent(said),
        omissions=side.omissions,
    )


def _words(message: Mapping[str, Any]) -> str:
    """Return what the sender wrote or chose; "" for a picture without a caption."""
    content, kind = _content(message), message.get("type")
    if kind == "interactive":
        content = _choice(content)
    words = (content.get(name) for name in ("body", "text", "title", "caption"))
    return next((word for word in words if isinstance(word, str)), "")


def _choice(interactive: Mapping[str, Any]) -> Mapping[str, Any]:
    replies = (interactive.get(name) for name in ("button_reply", "list_reply"))
    return next((reply for reply in replies if isinstance(reply, Mapping)), {})


def _consent_of(message: Mapping[str, Any]) -> Mapping[str, str]:
    """Return what a message says of notifications; of a choice, its label and what its program calls it."""
    content = _content(message)
    if message.get("type") not in ("button", "interactive"):
        return consent_in(_words(message))
    flow = content.get("nfm_reply")
    chosen = _choice(content)
    names = [content.get("payload"), chosen.get("id")]
    answers = (
        list(islice(_answers(flow.get("response_json")), ANSWERS_MAX)) if isinstance(flow, Mapping) else []
    )
    texts = [name for name in (*names, *answers) if isinstance(name, str)]
    return consent_in_choice([_words(message), *answers], texts)


def _answers(response: Any) -> Iterator[str]:
    """Yield what somebody chose in a flow: {"choice": "0_Stop_promotions"}, {"opt_out": true}."""
    try:
        pending = [read_json(response) if isinstance(response, str) else response]
    except ValueError:
        return
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            pending += value
        elif isinstance(value, Mapping):  # of a box that was ticked the name is the answer
            pending += [name if str(inner).casefold() in TICKED else inner for name, inner in value.items()]


def _preference(item: _Item, context: DecodeContext) -> DecodedEvent | None:
    stated = item.body
    said = {"stop": OFF, "resume": ON}.get(str(stated.get("value")).casefold())
    if stated.get("category") != "marketing_messages" or said is None:
        return None
    ids = [*_person_ids(stated), *_person_ids(item.contact)]
    sender = ids[0][1].removeprefix("+") if ids else None
    at = epoch(stated.get("timestamp"), "timestamp")
    return _statement(item, f"preference:{sender}:{at}", {NOTIFICATIONS: said}, context)


READERS: Mapping[str, Callable[[_Item, DecodeContext], DecodedEvent | None]] = {
    "messages": _message,
    "user_preferences": _preference,
    "user_id_update": _user_id_update,
}
