"""WhatsApp Business Cloud API: messages that people sent to a business number.

https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/messages
A webhook holds any number of messages under entry[].changes[].value.messages[]. A message without id, time or
sender is refused; an opt-out needs only its sender. Whatever else is wrong with it, it is accepted.
`sentiment` on a message is our extension.

People: WhatsApp proves a sender by number (`from`, without its plus sign), by an id that it has made for this
business (`from_user_id`), or by both. A sender with a username may be given by id alone. If a message lacks
the number or the id, its entry in value.contacts[] may have it. A username is never an identity, because
tomorrow it may be another person's.
https://developers.facebook.com/documentation/business-messaging/whatsapp/business-scoped-user-ids

Consent: a sender who writes or chooses a word of rules.leads.consent ("stop"), or who stops marketing
messages in WhatsApp (value.user_preferences[], or a system message `user_preference_changed`), wants no more
notifications. So does who is told to have stopped them by the error of a message that the business sent
(131050). That is remembered for good. Of an edited message only this is read. A preference that we do not
know is refused, so that an operator finds it.
https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/user_preferences

A changed number or id is an event of its own (IDENTITY_REPLACED). These are no events: any other status of
what the business sent (value.statuses[]), withdrawn reactions, revoked messages, and what WhatsApp does not
deliver.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ingest.leads.readers import (
    DecodeContext,
    DecodedEvent,
    DecodeError,
    PayloadPart,
    SideFields,
    derived_from_text,
    epoch,
    identities,
    opt_out_id,
    opt_out_time,
    text_id,
)
from rules.json_values import read_json
from rules.leads.consent import consent_in, consent_in_choice
from rules.leads.identity import Identity
from rules.leads.lead_events import (
    IDENTITY_REPLACED,
    MESSAGE_RECEIVED,
    NOTIFICATIONS,
    OFF,
    ON,
    PREFERENCE_STATED,
)
from rules.leads.webhook_signatures import Signature

# https://developers.facebook.com/docs/graph-api/webhooks/getting-started: with the app's secret.
SIGNATURE = Signature("x-hub-signature-256", "sha256=", is_hex=True)

# Types of messages that no person wrote, or that cannot be read.
NOTICES = frozenset({"unsupported", "unknown", "errors", "revoke", "request_welcome"})

MARKETING = "marketing_messages"  # the only category of user_preferences[]
PREFERENCES = {"stop": OFF, "resume": ON}
# https://developers.facebook.com/documentation/business-messaging/whatsapp/support/error-codes
STOPPED_MARKETING = "131050"
STATUSES = "statuses"
# Types of messages in which people write or choose words.
WITH_WORDS = ("button", "interactive", "text")

# A text that Meta wants to read back before it sends webhooks to an address.
CHALLENGE = re.compile(r"[ -~]{1,128}", re.ASCII)
# The fields of an item, or of a contact, with the person's numbers and ids. Some partners of Meta write an id
# in a number's field.
NUMBER_FIELDS = ("from", "wa_id", "recipient_id")
USER_ID_FIELDS = (
    *("from_user_id", "user_id", "from_parent_user_id", "parent_user_id"),
    *("recipient_user_id", "recipient_parent_user_id"),
)
USER_ID = re.compile(r"[A-Z]{2}(\.ENT)?\.[A-Za-z0-9]+", re.ASCII)
# The fields of a changed number or id, in a system message.
NEW_NUMBER_FIELDS = ("customer", "wa_id", "new_wa_id")
PREVIOUS_ID_FIELDS = ("previous_user_id", "previous_parent_user_id")
ANSWERS_MAX = 100  # of a flow, whose answers a stranger may have written
TICKED = ("true", "yes", "1")
PersonId = tuple[str, str]  # channel and raw value
PersonIds = dict[PersonId, None]  # each once, in the order of the fields
Contact = Mapping[str, Any]  # an entry of value.contacts[]


def challenge(query: Mapping[str, str]) -> tuple[str, str] | None:
    """Return (token, text to answer) of a challenge of Meta's; None for another request."""
    text = query.get("hub.challenge", "")
    if query.get("hub.mode") != "subscribe" or CHALLENGE.fullmatch(text) is None:
        return None
    return query.get("hub.verify_token", ""), text


def parts(payload: Any) -> Iterator[PayloadPart]:
    """Split a webhook into webhooks of one item. A malformed entry or change is a part by itself."""
    for entry_index, entry in enumerate(_required_list(payload, "entry")):
        changes = entry.get("changes") if isinstance(entry, Mapping) else None
        if not isinstance(changes, list):
            yield PayloadPart({"entry": [entry]}, f"entry.{entry_index}", "entry.0")
            continue
        for change_index, change in enumerate(changes):
            path, inner = f"entry.{entry_index}.changes.{change_index}", "entry.0.changes.0"
            for each in _lists_apart(change):
                try:
                    items = list(_items_of(each))
                except DecodeError:
                    yield PayloadPart({"entry": [{"changes": [each]}]}, path, inner)
                    continue
                for item in items:
                    item_inner = f"{inner}.value.{item.list_name}.0"
                    yield PayloadPart(_webhook_around(item), f"{path}.{item.path}", item_inner)


def join(payloads: list[Any]) -> dict[str, Any]:
    """Make a webhook of the entries of several."""
    return {"entry": [entry for payload in payloads for entry in payload["entry"]]}


def _lists_apart(change: Any) -> list[Any]:
    """Return a change as changes of one list each, so that a bad list does not affect the others."""
    value = change.get("value") if isinstance(change, Mapping) else None
    if not isinstance(value, Mapping) or len(READERS.keys() & value.keys()) < 2:
        return [change]
    return [
        {
            **change,
            "value": {name: each for name, each in value.items() if name not in READERS or name == kept},
        }
        for kept in READERS
        if kept in value
    ]


def decode(payload: Any, context: DecodeContext) -> list[DecodedEvent]:
    """Read all messages, stated preferences and changed ids of a webhook."""
    events: list[DecodedEvent] = []
    for entry in _required_list(payload, "entry"):
        for change in _required_list(entry, "changes"):
            for item in _items_of(change):
                if not isinstance(item.body, Mapping):
                    raise DecodeError("", "must be an object")
                if event := READERS[item.list_name](item, context):
                    events.append(event)
    return events


@dataclass(frozen=True, slots=True)
class _Item:
    """An item of one of a webhook's lists."""

    path: str  # from its change on, such as `value.messages.0`
    list_name: str
    body: Mapping[str, Any]
    contact: Contact  # the entry that has further ids of its sender; {} if there is none


def _items_of(change: Any) -> Iterator[_Item]:
    """Yield the items of all lists that have readers: partners of Meta put several lists in one change."""
    if not isinstance(change, Mapping):
        raise DecodeError("", "must be an object")
    value, field = change.get("value"), change.get("field") or "messages"
    if not isinstance(field, str) or field not in READERS:
        return
    if not isinstance(value, Mapping):
        raise DecodeError("value", "must be an object")
    contacts = _contacts_by_id(value.get("contacts"))
    for list_name in READERS:
        if value.get(list_name) is None or (list_name == STATUSES and not isinstance(value[STATUSES], list)):
            continue  # of statuses only few are of interest: no other fault of theirs is
        bodies = _required_list(value, list_name, "value.")
        for index, body in enumerate(bodies):
            if list_name == STATUSES and not _tells_of_a_stop(body):
                continue
            contact = _contact_with_more_ids(body, contacts, is_only_item=len(bodies) == 1)
            yield _Item(f"value.{list_name}.{index}", list_name, body, contact)


def _tells_of_a_stop(status: Any) -> bool:
    """Return whether a status says that a message was not sent, because its recipient has stopped them."""
    errors = status.get("errors") if isinstance(status, Mapping) else None
    return isinstance(errors, list) and any(
        isinstance(error, Mapping) and str(error.get("code")) == STOPPED_MARKETING for error in errors
    )


def _required_list(holder: Any, name: str, path: str = "") -> list[Any]:
    """Return a list that an object must have. path: of the object, with a dot at its end."""
    if not isinstance(holder, Mapping):
        raise DecodeError(path.rstrip("."), "must be an object")
    listed = holder.get(name)
    if not isinstance(listed, list):
        raise DecodeError(f"{path}{name}", "is missing" if listed is None else "must be a list")
    return listed


def _webhook_around(item: _Item) -> dict[str, Any]:
    """Return a webhook that has an item alone, with the contact that tells of its sender."""
    value: dict[str, Any] = {item.list_name: [item.body]}
    if item.contact:
        value["contacts"] = [item.contact]
    return {"entry": [{"changes": [{"field": item.list_name, "value": value}]}]}


def _message(item: _Item, context: DecodeContext) -> DecodedEvent | None:
    """Read an entry of messages[]; None for one that no person wrote, or that withdraws a reaction."""
    message, kind = item.body, _kind(item.body)
    if kind in NOTICES or (kind == "reaction" and not _content(message).get("emoji")):
        return None
    if kind == "system" and str(_content(message).get("type")).endswith("preference_changed"):
        meaning = _meaning_of_preference(_content(message).get("marketing"), "system.marketing")
        return _statement(item, message.get("id"), {NOTIFICATIONS: meaning}, context)
    if kind == "system":
        return _number_change(item, context)
    if kind == "edit":
        return _edit(item, context)
    side, consent = SideFields(), _stated_consent(message)
    event_id, occurred_at = _name_and_time(item, message.get("id"), consent, context, side)
    return DecodedEvent(
        external_event_id=event_id,
        event_type=MESSAGE_RECEIVED,
        occurred_at=occurred_at,
        identities=_sender(item, context, side),
        object_id=event_id,
        object_id_ref="message",
        payload={
            **derived_from_text(_words(message), message.get("sentiment"), side),
            **_consent_payload(consent),
        },
        omissions=side.omissions,
    )


def _name_and_time(
    item: _Item,
    event_id: Any,
    consent: Mapping[str, str],
    context: DecodeContext,
    side: SideFields,
) -> tuple[str, str]:
    """Return an item's id and its time, a stamp. An opt-out needs neither of them to be there."""
    timestamp = item.body.get("timestamp")
    if consent.get(NOTIFICATIONS) != OFF:
        return text_id(event_id, "id"), epoch(timestamp, "timestamp")
    occurred_at, named_time = opt_out_time(timestamp, "timestamp", context, side)
    who = list(_person_ids(item.body) | _person_ids(item.contact))
    return opt_out_id(event_id, "id", side, kind=item.list_name, time=named_time, who=who), occurred_at


def _number_change(item: _Item, context: DecodeContext) -> DecodedEvent | None:
    """Read a system message that somebody has another number or id; None for another one, or without ids."""
    system = _content(item.body)
    # Versions of the API begin these types with `user_` or `customer_`.
    if not str(system.get("type")).endswith(("changed_number", "changed_user_id")):
        return None
    ids = _person_ids(item.body) | _person_ids(
        system, NEW_NUMBER_FIELDS, (*USER_ID_FIELDS, *PREVIOUS_ID_FIELDS)
    )
    return _replacement(item, ids, item.body.get("id"), context)


def _user_id_update(item: _Item, context: DecodeContext) -> DecodedEvent | None:
    """Read an entry of user_id_update[], which partners of Meta pass on: {user_id: {previous, current}}."""
    ids = _person_ids(item.body, user_id_fields=())
    for name in ("user_id", "parent_user_id"):
        if isinstance(change := item.body.get(name), Mapping):
            ids |= _person_ids(change, (), ("previous", "current"))
    # The entry has no id. These ids make one that a resend has, too.
    event_id = ":".join(["user_id_update", *(value for channel, value in ids if channel == "whatsapp")])
    return _replacement(item, ids, event_id, context)


def _replacement(item: _Item, ids: PersonIds, event_id: Any, context: DecodeContext) -> DecodedEvent | None:
    """Return the event that these ids belong to one person; None if there is only one."""
    if len(ids) < 2:
        return None
    side = SideFields()
    return DecodedEvent(
        external_event_id=text_id(event_id, "id"),
        event_type=IDENTITY_REPLACED,
        occurred_at=epoch(item.body.get("timestamp"), "timestamp"),
        identities=identities(ids, context, item.list_name, are_verified=True, side=side),
        omissions=side.omissions,
    )


def _edit(item: _Item, context: DecodeContext) -> DecodedEvent | None:
    """Read an edited message: only what it says of consent."""
    message = _content(item.body).get("message")
    consent = _stated_consent(message) if isinstance(message, Mapping) else {}
    return _statement(item, item.body.get("id"), consent, context) if consent else None


def _preference(item: _Item, context: DecodeContext) -> DecodedEvent | None:
    """Read an entry of user_preferences[]: who stops or resumes marketing messages.

    Who stops messages of another category, of which we know none, wants none at all.
    """
    preference = item.body
    meaning = _meaning_of_preference(preference.get("value"), "value")
    if meaning == ON and str(preference.get("category") or MARKETING).casefold() != MARKETING:
        raise DecodeError("category", f"must be {MARKETING}: we know no other that somebody may resume")
    ids = [*_person_ids(preference), *_person_ids(item.contact)]
    sender = ids[0][1].removeprefix("+") if ids else None
    # The entry has no id. Sender and time make one that a resend has, too.
    stated_at = SideFields().read(epoch, preference.get("timestamp"), "timestamp")
    event_id = f"preference:{sender}:{stated_at}" if stated_at else None
    return _statement(item, event_id, {NOTIFICATIONS: meaning}, context)


def _status(item: _Item, context: DecodeContext) -> DecodedEvent:
    """Read an entry of statuses[] whose recipient has stopped marketing messages."""
    message_id = item.body.get("id")
    event_id = f"stopped:{message_id}" if isinstance(message_id, str) and message_id else None
    return _statement(item, event_id, {NOTIFICATIONS: OFF}, context)


def _meaning_of_preference(value: Any, name: str) -> str:
    word = value.strip().casefold() if isinstance(value, str) else ""
    if word not in PREFERENCES:
        raise DecodeError(name, f"must be {' or '.join(PREFERENCES)}")
    return PREFERENCES[word]


def _statement(
    item: _Item, event_id: Any, consent: Mapping[str, str], context: DecodeContext
) -> DecodedEvent:
    """Return the event that a sender states consent, or takes it back."""
    side = SideFields()
    event_id, occurred_at = _name_and_time(item, event_id, consent, context, side)
    return DecodedEvent(
        external_event_id=event_id,
        event_type=PREFERENCE_STATED,
        occurred_at=occurred_at,
        identities=_sender(item, context, side),
        payload=_consent_payload(consent),
        omissions=side.omissions,
    )


READERS: Mapping[str, Callable[[_Item, DecodeContext], DecodedEvent | None]] = {
    "messages": _message,
    "user_preferences": _preference,
    "user_id_update": _user_id_update,
    STATUSES: _status,
}


def _person_ids(
    holder: Mapping[str, Any],
    number_fields: Iterable[str] = NUMBER_FIELDS,
    user_id_fields: Iterable[str] = USER_ID_FIELDS,
) -> PersonIds:
    """Return the numbers and ids that an object has in these fields."""
    ids: PersonIds = {}
    for name in (*number_fields, *user_id_fields):
        value = holder.get(name)
        if type(value) not in (str, int) or value == "":
            continue
        text = str(value)
        if name in user_id_fields or USER_ID.fullmatch(text):
            ids["whatsapp", text] = None
        else:
            ids["phone", f"+{text.lstrip('+')}"] = None
    return ids


def _contacts_by_id(listed: Any) -> dict[PersonId, Contact]:
    """Return the contacts by each of their ids. If two have the same id, the first one counts."""
    by_id: dict[PersonId, Contact] = {}
    contacts = listed if isinstance(listed, list) else []
    for contact in contacts:
        for person_id in _person_ids(contact) if isinstance(contact, Mapping) else ():
            by_id.setdefault(person_id, contact)
    return by_id


def _contact_with_more_ids(body: Any, contacts: Mapping[PersonId, Contact], *, is_only_item: bool) -> Contact:
    """Return the contact that has further ids of an item's sender; {} if there is none.

    is_only_item: the item is the only one of its list. Then it gets the only contact if it has no ids itself.
    """
    if not isinstance(body, Mapping):
        return {}
    item_ids = _person_ids(body).keys()
    if item_ids:
        candidates = [contacts[person_id] for person_id in item_ids if person_id in contacts]
    elif is_only_item and len({id(contact) for contact in contacts.values()}) == 1:
        candidates = list(contacts.values())
    else:
        return {}
    return next((contact for contact in candidates if _person_ids(contact).keys() - item_ids), {})


def _sender(item: _Item, context: DecodeContext, side: SideFields) -> tuple[Identity, ...]:
    """Return the identities of an item's sender, its contact's too; raises DecodeError without any."""
    ids = _person_ids(item.body) | _person_ids(item.contact)
    field_name = {"user_preferences": "wa_id", STATUSES: "recipient_id"}.get(item.list_name, "from")
    if not ids:
        raise DecodeError(field_name, "is missing, and there is no user id")
    return identities(ids, context, field_name, are_verified=True, side=side)


def _content(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the object that a message has under the name of its type: {"type": "text", "text": {...}}."""
    content = message.get(_kind(message))
    return content if isinstance(content, Mapping) else {}


def _kind(message: Mapping[str, Any]) -> str:
    """Return a message's type; one that it lacks is that of the words or of the choice that it has."""
    if isinstance(kind := message.get("type"), str):
        return kind
    return next((name for name in WITH_WORDS if isinstance(message.get(name), Mapping)), "")


def _words(message: Mapping[str, Any]) -> str:
    """Return the words that the sender wrote or chose; "" for a picture without a caption."""
    content, kind = _content(message), _kind(message)
    if kind == "interactive":
        content = _choice(content)
    words = (content.get(name) for name in ("body", "text", "title", "caption"))
    return next((word for word in words if isinstance(word, str)), "")


def _choice(interactive: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the button, or the entry of a list, that the sender chose; {} if none was."""
    replies = (interactive.get(name) for name in ("button_reply", "list_reply"))
    return next((reply for reply in replies if isinstance(reply, Mapping)), {})


def _consent_payload(consent: Mapping[str, str]) -> dict[str, Any]:
    return {"consent": dict(consent)} if consent else {}


def _stated_consent(message: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the consent that a message states. Of a choice, its label counts, and its name in a program."""
    if _kind(message) not in ("button", "interactive"):
        return consent_in(_words(message))
    content = _content(message)
    flow = content.get("nfm_reply")
    answers = []
    if isinstance(flow, Mapping):
        answers = list(islice(_flow_answers(flow.get("response_json")), ANSWERS_MAX))
    program_names = [content.get("payload"), _choice(content).get("id"), *answers]
    return consent_in_choice(
        [_words(message), *answers], [name for name in program_names if isinstance(name, str)]
    )


def _flow_answers(response: Any) -> Iterator[str]:
    """Yield the answers in a flow's response: {"choice": "0_Stop_promotions"}, {"opt_out": true}."""
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
        elif isinstance(value, Mapping):  # a ticked box answers with its name
            pending += [name if str(inner).casefold() in TICKED else inner for name, inner in value.items()]
