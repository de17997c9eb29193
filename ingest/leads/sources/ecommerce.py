"""A shop's orders and refunds, in the shape of Shopify's webhooks.

https://shopify.dev/docs/api/admin-rest/latest/resources/order, .../refund
Order: id, processed_at or created_at, total_price, currency, customer {id, email, phone}, line_items
[{product_id or sku, quantity}]. Refund: id, order_id, processed_at or created_at, transactions [{kind,
amount, currency, status}] or total_price and currency, and customer. Shopify does not name the customer in a
refund, so the integration adds it. `topic` is orders/create or refunds/create; without it, a payload with an
order_id is a refund.
The customer is verified: the shop confirms the order of an account. Contacts of an order without a customer
are what somebody typed at the till: claimed.
"""

from typing import Any

from ingest.leads.decoding import DecodeContext, DecodedEvent, DecodeError, checked
from ingest.leads.lead_schemas import ORDER
from ingest.leads.payload_fields import (
    AMOUNT_MINOR_MAX,
    minor_units,
    moment,
    products,
    same_currency,
    text_id,
)
from ingest.leads.person_fields import identities
from rules.leads.hooks.signatures import Signature
from rules.leads.identity.identities import Identity
from rules.leads.lead_events import ORDER_PLACED, ORDER_REFUNDED

# https://shopify.dev/docs/apps/build/webhooks/subscribe/https: over the body, with the app's client secret.
SIGNATURE = Signature("x-shopify-hmac-sha256", id_header="x-shopify-webhook-id")
TOPIC_HEADER = "x-shopify-topic"

TOPICS = {
    "orders/create": ORDER_PLACED,
    "order_placed": ORDER_PLACED,
    "refunds/create": ORDER_REFUNDED,
    "order_refunded": ORDER_REFUNDED,
}
Body = dict[str, Any]


def decode(payload: Any, context: DecodeContext) -> list[DecodedEvent]:
    """Read the order or the refund. A refund may have an order's id, so external ids say which: `order:7`."""
    body = checked(ORDER, payload)
    kind = _kind(body)
    own_id = text_id(body["id"], "id")
    is_refund = kind == ORDER_REFUNDED
    order_id = text_id(body.get("order_id"), "order_id") if is_refund else own_id
    when = "processed_at" if body.get("processed_at") else "created_at"
    listed = products([] if is_refund else body.get("line_items", []), "line_items")
    return [
        DecodedEvent(
            external_event_id=text_id(f"{'refund' if is_refund else 'order'}:{own_id}", "id"),
            event_type=kind,
            occurred_at=moment(body.get(when), when),
            identities=_customer(body, context),
            object_id=order_id,
            object_id_ref="order",
            payload={
                "order_id": order_id,
                "amount_minor": _amount(body, context, is_refund=is_refund),
                "currency": context.currency,
                **({"products": listed} if listed else {}),
            },
        )
    ]


def _kind(body: Body) -> str:
    topic = body.get("topic") or ("refunds/create" if "order_id" in body else "orders/create")
    if topic not in TOPICS:
        raise DecodeError("topic", f"must be one of {', '.join(sorted(TOPICS))}")
    return TOPICS[topic]


def _customer(body: Body, context: DecodeContext) -> tuple[Identity, ...]:
    """Return who bought. The order's own email and phone count only if the customer has no identity.

    Those of a gift may be the recipient's.
    """
    customer = body.get("customer") or {}
    found = [(channel, customer.get(name)) for channel, name in CHANNELS]
    is_customer = any(value for _, value in found)
    if not is_customer:
        found = [(channel, body.get(name)) for channel, name in CHANNELS[1:]]
    return identities(found, context, "customer", are_verified=is_customer)


CHANNELS = (("customer", "id"), ("email", "email"), ("phone", "phone"))


def _amount(body: Body, context: DecodeContext, *, is_refund: bool) -> int:
    transactions = body.get("transactions")
    if not is_refund or transactions is None:
        currency = same_currency(body.get("currency"), context)
        return minor_units(body.get("total_price"), currency, "total_price")
    if not isinstance(transactions, list):
        raise DecodeError("transactions", "must be a list")
    total = sum(_refunded(each, f"transactions.{place}", context) for place, each in enumerate(transactions))
    if total > AMOUNT_MINOR_MAX:
        raise DecodeError("transactions", f"must come to at most {AMOUNT_MINOR_MAX} minor units")
    return total


def _refunded(transaction: Any, path: str, context: DecodeContext) -> int:
    """Return what a transaction gave back, in minor units: 0 if it is of another kind, or did not succeed."""
    if not isinstance(transaction, dict):
        raise DecodeError(path, "must be an object")
    if transaction.get("kind", "refund") != "refund" or transaction.get("status", "success") != "success":
        return 0
    currency = same_currency(transaction.get("currency"), context, f"{path}.currency")
    return minor_units(transaction.get("amount"), currency, f"{path}.amount")
