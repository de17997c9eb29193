"""Our own format, for integrations that have none: one event in our words.

    {"external_event_id", "event_type", "occurred_at", "identities": {channel: id or [ids]},
     "claimed"?: [channel], "object"?: {"id", "type"?}, "data"?: {...}}

claimed: the channels of which the sender says that nobody has proven them, as what a person typed. All other
identities are verified: the sender holds the organization's key, and answers for them.

A webhook that is signed by Standard Webhooks may leave out external_event_id: then it is the `webhook-id`.

data by event type: order_*: order_id, currency, amount (decimal text or number), products?;
message_received and form_submitted: text?, sentiment? (-1 to 1), objections?, preferences?;
page_viewed: category?, product_id?; preference_stated: preferences; objection_raised: objections;
campaign_*: campaign_id. We read objections from `text`, and keep it only in the raw payload.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ingest.leads.decoding import DecodeContext, DecodedEvent, DecodeError, checked
from ingest.leads.lead_schemas import GENERIC, GENERIC_DATA
from ingest.leads.payload_fields import amount_in, currency_of, minor_units, moment, products, text_id
from ingest.leads.person_fields import derived_from_text, preferences_of, strict_identities, topics_of
from rules.leads.hooks.signatures import Part, Signature
from rules.leads.lead_events import CAMPAIGN_TYPES, PURCHASE_TYPES, SENTIMENT_TYPES

# https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
# Svix, where the standard comes from, and who sends through it name the same headers `svix-id` and so on:
# https://docs.svix.com/receiving/verifying-payloads/how-manual
SIGNATURE = Signature(
    "webhook-signature",
    "v1,",
    (Part.ID, b".", Part.TIMESTAMP, b".", Part.BODY),
    timestamp_header="webhook-timestamp",
    id_header="webhook-id",
    base64_secret=True,
    twin=("webhook-", "svix-"),
)

Data = dict[str, Any]


def decode(payload: Any, context: DecodeContext) -> list[DecodedEvent]:
    """Read the event. Nothing bad is left out or guessed, because the sender can correct it."""
    body = checked(GENERIC, payload)
    kind = body["event_type"]
    about = body.get("object", {})
    try:
        data = checked(GENERIC_DATA[kind], body.get("data", {}))
        derived = READERS[kind](data, context)
    except DecodeError as error:
        raise DecodeError(f"data.{error.field}".rstrip("."), error.reason) from None
    return [
        DecodedEvent(
            external_event_id=text_id(
                body.get("external_event_id", context.delivery_id), "external_event_id"
            ),
            event_type=kind,
            occurred_at=moment(body["occurred_at"], "occurred_at"),
            identities=strict_identities(body["identities"], context, "identities", body.get("claimed", ())),
            object_id=text_id(about["id"], "object.id") if about else derived.get("order_id"),
            object_id_ref=about.get("type") if about else "order" if "order_id" in derived else None,
            payload=derived,
        )
    ]


def _order(data: Data, context: DecodeContext) -> Data:
    currency = currency_of(data["currency"])
    derived = {
        "order_id": text_id(data["order_id"], "order_id"),
        **amount_in(currency, minor_units(data["amount"], currency, "amount"), context),
    }
    listed = products(data.get("products", []), "products")
    return derived | ({"products": listed} if listed else {})


def _words(data: Data, _: DecodeContext) -> Data:
    return derived_from_text(
        data.get("text"), data.get("sentiment"), data.get("objections"), data.get("preferences")
    )


def _page(data: Data, _: DecodeContext) -> Data:
    return {name: text_id(value, name) for name, value in data.items()}


def _preferences(data: Data, _: DecodeContext) -> Data:
    return {"preferences": preferences_of(data["preferences"])}


def _objections(data: Data, _: DecodeContext) -> Data:
    return {"objections": topics_of(data["objections"])}


def _campaign(data: Data, _: DecodeContext) -> Data:
    return {"campaign_id": text_id(data["campaign_id"], "campaign_id")}


READERS: Mapping[str, Callable[[Data, DecodeContext], Data]] = {
    **dict.fromkeys(PURCHASE_TYPES, _order),
    **dict.fromkeys(SENTIMENT_TYPES, _words),
    **dict.fromkeys(CAMPAIGN_TYPES, _campaign),
    "page_viewed": _page,
    "preference_stated": _preferences,
    "objection_raised": _objections,
}
