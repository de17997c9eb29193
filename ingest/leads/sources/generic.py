"""Our own format, for integrations that have none: one event in our words.

    {"external_event_id", "event_type", "occurred_at", "identities": {channel: id or [ids]},
     "claimed"?: [channel], "object"?: {"id", "type"?}, "data"?: {...}}

claimed: the channels of which the sender says that nobody has proven them, as what a person typed. All other
identities are verified: the sender holds the organization's key, and answers for them.

A webhook that is signed by Standard Webhooks may leave out external_event_id: then it is the `webhook-id`.

data by event type: purchase_completed, order_*: order_id, currency, amount (decimal text, number), products?;
message_received and form_submitted: text?, sentiment? (-1 to 1), objections?, preferences?;
page_viewed: category?, product_id?; preference_stated: preferences; objection_raised: objections;
campaign_*: campaign_id; identity_replaced: nothing, because its identities are the old and the new ones.
We read objections from `text`, and keep it only in the raw payload.

A text that asks to stop (rules.leads.consent) is an opt-out, and so are campaign_unsubscribed without a
campaign, and preferences that say {"notifications": "off"}. None of these fields brings messages back.

An event must have its id, type, time, one good identity, and the fields of `data` without a question mark. An
opt-out needs its type and one good identity.
What else cannot be read is left out, as are unknown fields; the answer of POST /v1/leads/events lists both.
"""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from ingest.leads.lead_schemas import GENERIC, GENERIC_DATA
from ingest.leads.readers import (
    IDENTITIES_MAX,
    REASON_CHARACTERS_MAX,
    DecodeContext,
    DecodedEvent,
    DecodeError,
    SideFields,
    amount_in,
    checked,
    currency_of,
    derived_from_text,
    minor_units,
    moment,
    opt_out_id,
    opt_out_time,
    preferences_of,
    preferred_opt_out,
    products,
    read_identity,
    text_id,
    topics_of,
    typed_opt_out,
)
from ingest.web.json_schema import SHORT
from rules.leads.identity import Identity
from rules.leads.lead_events import (
    CAMPAIGN_TYPES,
    CAMPAIGN_UNSUBSCRIBED,
    NOTIFICATIONS,
    OFF,
    PREFERENCE_STATED,
    PURCHASE_TYPES,
    SENTIMENT_TYPES,
)
from rules.leads.webhook_signatures import Signature, SignedPart

# https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
# Svix, where the standard comes from, and who sends through it name the same headers `svix-id` and so on:
# https://docs.svix.com/receiving/verifying-payloads/how-manual
SIGNATURE = Signature(
    "webhook-signature",
    "v1,",
    (SignedPart.ID, b".", SignedPart.TIMESTAMP, b".", SignedPart.BODY),
    timestamp_header="webhook-timestamp",
    id_header="webhook-id",
    base64_secret=True,
    twin=("webhook-", "svix-"),
)

Data = dict[str, Any]
T = TypeVar("T")
FIELDS = frozenset({*GENERIC["properties"], "object", "data"})


def decode(payload: Any, context: DecodeContext) -> list[DecodedEvent]:
    """Read the event. omissions: unknown fields, too, because the sender may have meant another."""
    side = SideFields()
    if opt_out := _opt_out(payload, context, side):
        return [opt_out]
    body = checked(GENERIC, payload)
    _omit_unknown(body, FIELDS, side)
    data = _data(body, context, side)
    object_id, object_type = _object(body.get("object"), side)
    if object_id is None:
        object_id, object_type = data.get("order_id"), "order" if "order_id" in data else None
    return [
        DecodedEvent(
            external_event_id=text_id(
                body.get("external_event_id", context.delivery_id), "external_event_id"
            ),
            event_type=body["event_type"],
            occurred_at=moment(body["occurred_at"], "occurred_at"),
            identities=_identities(body, context, side),
            object_id=object_id,
            object_id_ref=object_type,
            payload=data,
            omissions=side.omissions,
        )
    ]


def _opt_out(payload: Any, context: DecodeContext, side: SideFields) -> DecodedEvent | None:
    """Read an event by which somebody opts out; None for others. It needs only its type and an identity."""
    body = payload if isinstance(payload, dict) else {}
    event_type, data = str(body.get("event_type")), body.get("data")
    data = data if isinstance(data, dict) else {}
    words = typed_opt_out(data.get("text")) if event_type in SENTIMENT_TYPES else {}
    if event_type in (*SENTIMENT_TYPES, PREFERENCE_STATED):
        words |= preferred_opt_out(data.get("preferences"))
    if event_type != CAMPAIGN_UNSUBSCRIBED and not words:
        return None
    who = _identities(body | {"claimed": _claimed_channels(body, side)}, context, side)
    occurred_at, named_time = opt_out_time(body.get("occurred_at"), "occurred_at", context, side, moment)
    event_id = opt_out_id(
        body.get("external_event_id") or context.delivery_id,
        "external_event_id",
        side,
        kind=event_type,
        time=named_time,
        who=sorted(each.external_id for each in who),
    )
    object_id, object_type = _object(body.get("object"), side)
    if words:
        derived = _words(data, context, side) | words
    elif campaign_id := side.read(text_id, data.get("campaign_id"), "data.campaign_id"):
        derived = {"campaign_id": campaign_id}
    else:
        event_type, derived = PREFERENCE_STATED, {"consent": {NOTIFICATIONS: OFF}}
    _omit_unknown(body, FIELDS, side)
    return DecodedEvent(
        event_id, event_type, occurred_at, who, object_id, object_type, derived, omissions=side.omissions
    )


def _claimed_channels(body: Data, side: SideFields) -> list[Any]:
    """Return the channels that an opt-out's sender has not proven: all of them if that cannot be read."""
    claimed = body.get("claimed")
    if not isinstance(body.get("identities"), dict):
        raise DecodeError("identities", "must be an object, such as {email: ada@example.com}")
    if claimed is None or isinstance(claimed, list):
        return claimed or []
    side.omit("claimed", "must be a list")
    return list(body["identities"])


def _data(body: Data, context: DecodeContext, side: SideFields) -> Data:
    """Return the event's payload, read from `data`; raises DecodeError with a path from `data` on."""
    event_type, raw, data_side = body["event_type"], body.get("data", {}), SideFields()
    if not isinstance(raw, dict):
        side.omit("data", "must be an object")
        raw = {}
    reader, fields = READERS[event_type]
    try:
        data = reader(checked(GENERIC_DATA.get(event_type, {"type": "object"}), raw), context, data_side)
    except DecodeError as error:
        raise DecodeError(f"data.{error.field}".rstrip("."), error.reason) from None
    _omit_unknown(raw, fields, data_side)
    for omission in data_side.omissions:
        side.omit(f"data.{omission.field}".rstrip("."), omission.reason)
    return data


def _omit_unknown(body: Data, known: Collection[str], side: SideFields) -> None:
    for name in sorted(body.keys() - {*known}):
        side.omit("", f"has the unknown field {name}"[:100])


def _identities(body: Data, context: DecodeContext, side: SideFields) -> tuple[Identity, ...]:
    """Read {channel: id or [ids]}; raises DecodeError if no id is good, or more than 20 are.

    side: notes the bad ids if there is a good one.
    """
    claimed = body.get("claimed") or ()
    good, bad = dict[Identity, None](), list[tuple[str, str]]()
    for channel, ids in body["identities"].items():
        for raw in ids if isinstance(ids, list) else [ids]:
            try:
                good.setdefault(read_identity(channel, raw, context, is_verified=channel not in claimed))
            except ValueError as error:
                bad.append((f"identities.{channel}"[:100], str(error)[:REASON_CHARACTERS_MAX]))
    if bad and not good:
        raise DecodeError(*bad[0])
    if not 1 <= len(good) <= IDENTITIES_MAX:
        raise DecodeError("identities", f"must hold 1 to {IDENTITIES_MAX} identities")
    for name, reason in bad:
        side.omit(name, reason)
    return tuple(good)


def _object(raw: Any, side: SideFields) -> tuple[str | None, str | None]:
    """Return (id, type) of what the event is about, each None where there is none that can be read."""
    if raw is None:
        return None, None
    if not isinstance(raw, dict):
        side.omit("object", "must be an object")
        return None, None
    object_type = raw.get("type")
    if object_type is not None and not (isinstance(object_type, str) and re.search(SHORT, object_type)):
        side.omit("object.type", f"must match {SHORT}")
        object_type = None
    return side.read(text_id, raw.get("id"), "object.id"), object_type


def _order(data: Data, context: DecodeContext, side: SideFields) -> Data:
    currency = currency_of(data["currency"])
    derived = {
        "order_id": text_id(data["order_id"], "order_id"),
        **amount_in(currency, minor_units(data["amount"], currency, "amount"), context),
    }
    listed = products(data.get("products"), "products", side)
    return derived | ({"products": listed} if listed else {})


def _words(data: Data, _: DecodeContext, side: SideFields) -> Data:
    return derived_from_text(
        data.get("text"), data.get("sentiment"), side, data.get("objections"), data.get("preferences")
    )


def _page(data: Data, _: DecodeContext, side: SideFields) -> Data:
    fields = {name: side.read(text_id, data.get(name), name) for name in ("category", "product_id")}
    return {name: each for name, each in fields.items() if each is not None}


def _preferences(data: Data, _: DecodeContext, side: SideFields) -> Data:
    return {"preferences": _require_some(preferences_of(data["preferences"], side), "preferences", side)}


def _objections(data: Data, _: DecodeContext, side: SideFields) -> Data:
    return {"objections": _require_some(topics_of(data["objections"], side), "objections", side)}


def _require_some(value: T, name: str, side: SideFields) -> T:
    """Return what an event is there to say; raises DecodeError if nothing of it could be read."""
    if not value:
        raise DecodeError(name, side.omissions[0].reason)
    return value


def _campaign(data: Data, _: DecodeContext, _side: SideFields) -> Data:
    return {"campaign_id": text_id(data["campaign_id"], "campaign_id")}


def _no_data(_: Data, __: DecodeContext, _side: SideFields) -> Data:
    return {}


Reader = Callable[[Data, DecodeContext, SideFields], Data]
# By event type, what reads `data`, and the fields that it reads.
READERS: Mapping[str, tuple[Reader, tuple[str, ...]]] = {
    **dict.fromkeys(PURCHASE_TYPES, (_order, ("order_id", "amount", "currency", "products"))),
    **dict.fromkeys(SENTIMENT_TYPES, (_words, ("text", "sentiment", "objections", "preferences"))),
    **dict.fromkeys(CAMPAIGN_TYPES, (_campaign, ("campaign_id",))),
    "page_viewed": (_page, ("category", "product_id")),
    "preference_stated": (_preferences, ("preferences",)),
    "objection_raised": (_objections, ("objections",)),
    "identity_replaced": (_no_data, ()),
}
