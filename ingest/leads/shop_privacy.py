"""A shop's webhooks about its customers' rights, in Shopify's shape.

customers/redact erases the lead of the customer and of the orders that it names. The other topics are
refused, so that an operator finds them:
https://shopify.dev/docs/apps/build/compliance/privacy-law-compliance
"""

from typing import Any

from ingest.leads.payloads import (
    ERASURE_REQUESTED,
    DecodeContext,
    DecodedEvent,
    DecodeError,
    ErasurePart,
)
from ingest.leads.readers import SideFields, text_id, usable_identities
from rules.leads.lead_events import body_hash

# Topics of customers' rights, each with what an operator is to do; "": this system does it.
REDACT, DATA_REQUEST, SHOP_REDACT = "customers/redact", "customers/data_request", "shop/redact"
PRIVACY = {
    REDACT: "",
    DATA_REQUEST: "a customer asks for what is known of them: export the lead, and send it on",
    SHOP_REDACT: "the shop wants all of its data erased: erase its leads one by one, and take away its hook",
    "customers/delete": "the shop has deleted a customer: erase the lead, if the customer is to be forgotten",
}
ORDERS_MAX = 1_000  # orders that one request for an erasure names
Body = dict[str, Any]
SHOP_FIELDS = frozenset({"shop_id", "shop_domain"})
REQUEST_FIELDS = frozenset({"data_request", "orders_requested"})
# A body with one of these fields tells of an order.
ORDER_FIELDS = frozenset(
    {"total_price", "total_price_set", "currency", "line_items", "order_id", "created_at"}
)
# The channels of a customer's identities, each with its field of `customer`.
CHANNELS = (("customer", "id"), ("email", "email"), ("phone", "phone"))


def privacy_topic(body: Body, context: DecodeContext) -> str | None:
    """Return a body's topic of PRIVACY, without a topic the one that its shape shows; None for others."""
    topic = context.topic or body.get("topic")
    if isinstance(topic, str) and topic:
        return topic if topic in PRIVACY else None
    if "orders_to_redact" in body:
        return REDACT
    if not REQUEST_FIELDS.isdisjoint(body):
        return DATA_REQUEST
    return SHOP_REDACT if body.keys() == SHOP_FIELDS else None


def erasure_request(body: Body, topic: str, context: DecodeContext) -> DecodedEvent:
    """Return the request to erase a customer; raises DecodeError for what an operator is to do.

    The topic's header is not signed, so somebody may send an order's webhook once more under this topic.
    A body that has not the shape of a request is refused.
    """
    if topic == REDACT and not REQUEST_FIELDS.isdisjoint(body):
        topic = DATA_REQUEST
    if reason := PRIVACY[topic]:
        raise DecodeError("topic", f"is {topic}: {reason}")
    if {*SHOP_FIELDS, "orders_to_redact"}.isdisjoint(body) or not ORDER_FIELDS.isdisjoint(body):
        raise DecodeError("topic", f"is {REDACT}, but the body is not: nobody is erased")
    customer, side = body.get("customer"), SideFields()
    fields = customer if isinstance(customer, dict) else {}
    pairs = [(channel, fields.get(name)) for channel, name in CHANNELS]
    identities = usable_identities(pairs, context, "customer", are_verified=True, side=side)
    orders = side.items(body.get("orders_to_redact"), "orders_to_redact", ORDERS_MAX)
    order_ids = tuple(filter(None, (side.read(text_id, order_id, path) for path, order_id in orders)))
    if not identities and not order_ids:
        raise DecodeError("customer", "names nobody to erase, and there are no orders_to_redact")
    return DecodedEvent(
        external_event_id=f"erasure:{body_hash(body)}",
        event_type=ERASURE_REQUESTED,
        occurred_at=context.received_at,
        identities=identities,
        erasure=ErasurePart(order_ids),
        omissions=side.omissions,
    )
