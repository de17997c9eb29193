"""A shop's orders and refunds, in the shape of Shopify's webhooks.

https://shopify.dev/docs/api/admin-rest/latest/resources/order, .../refund
Order: id, processed_at or created_at, total_price, currency, customer {id, email, phone}, line_items
[{product_id or sku, quantity}], updated_at?, cancelled_at?, financial_status?, test?, refunds? [refund].
Refund: id, order_id, processed_at or created_at, transactions [{id?, kind, amount, currency, status}] or
total_price and currency, and customer?. Without a customer it belongs to its order's lead.
A shop tells of one order many times; what that comes to is in rules.leads.orders. Test orders count nothing.
An order of nobody (a till's, or the shop has taken the customer away) is told without identities where it is
signed: it counts for the lead that another webhook of it names. `topic` in the body is orders/create and so
on; without it, a payload with an order_id is a refund.
The customer is verified: the shop confirms the order of an account. Contacts of an order without a customer
are what somebody typed at the till: claimed.
"""

from collections.abc import Mapping
from typing import Any

from ingest.leads.decoding import DecodeContext, DecodedEvent, DecodeError, OrderPart, checked
from ingest.leads.lead_schemas import ORDER
from ingest.leads.payload_fields import (
    AMOUNT_MINOR_MAX,
    amount_in,
    currency_of,
    minor_units,
    moment,
    products,
    text_id,
)
from ingest.leads.person_fields import identities
from rules.leads.hooks.signatures import Signature
from rules.leads.identity.identities import Identity
from rules.leads.lead_events import ORDER_PLACED, ORDER_REFUNDED
from rules.leads.orders import FAILED, PENDING, SUCCEEDED, OrderSeen, PaidBack, Placed

# https://shopify.dev/docs/apps/build/webhooks/subscribe/https: over the body, with the app's client secret.
SIGNATURE = Signature("x-shopify-hmac-sha256", id_header="x-shopify-webhook-id")
TOPIC_HEADER = "x-shopify-topic"

ORDERS = ("create", "updated", "paid", "edited", "cancelled", "fulfilled", "partially_fulfilled")
TOPICS = {
    **{f"orders/{each}": ORDER_PLACED for each in ORDERS},
    "order_placed": ORDER_PLACED,
    "refunds/create": ORDER_REFUNDED,
    "order_refunded": ORDER_REFUNDED,
}
# It tells only what was changed. orders/updated comes too, and tells the order.
EDITS = "orders/edited"
VOID = frozenset({"voided", "expired"})
STATUSES = {"success": SUCCEEDED, "failure": FAILED, "error": FAILED, "cancelled": FAILED}
REFUNDS_MAX = 50
Body = dict[str, Any]


def decode(payload: Any, context: DecodeContext) -> list[DecodedEvent]:
    """Read the order or the refund. A refund may have an order's id, so external ids say which: `order:7`."""
    if context.topic and (context.topic not in TOPICS or context.topic == EDITS):
        return []
    body = checked(ORDER, payload)
    is_refund = _kind(body) == ORDER_REFUNDED
    if body.get("test") is True:
        return []
    own_id = text_id(body["id"], "id")
    order_id = text_id(body.get("order_id"), "order_id") if is_refund else own_id
    paid_back = _refund(body, "", context) if is_refund else _refunds(body, context)
    placed = None if is_refund else _placed(body)
    listed = products([] if is_refund else body.get("line_items", []), "line_items")
    when = "processed_at" if body.get("processed_at") else "created_at"
    return [
        DecodedEvent(
            external_event_id=text_id(f"{'refund' if is_refund else 'order'}:{own_id}", "id"),
            event_type=ORDER_REFUNDED if is_refund else ORDER_PLACED,
            occurred_at=moment(body.get(when), when),
            identities=_customer(body, context, is_refund=is_refund),
            object_id=order_id,
            object_id_ref="order",
            payload={
                "order_id": order_id,
                **_shown(placed, paid_back, context),
                **({"products": listed} if listed else {}),
            },
            order=OrderPart(order_id, OrderSeen(placed, paid_back), tuple(listed)),
        )
    ]


def _shown(
    placed: Placed | None, paid_back: Mapping[str, PaidBack], context: DecodeContext
) -> dict[str, Any]:
    """Return the amount that this webhook tells; what is stored is what that changes."""
    back = [each for each in paid_back.values() if each.status == SUCCEEDED]
    currency = placed.currency if placed else back[0].currency if back else context.currency
    amount = placed.amount_minor if placed else sum(each.amount_minor for each in back)
    return amount_in(currency, amount, context)


def _kind(body: Body) -> str:
    """Return what a body is. A topic in a header is not signed, so it does not say: the body's shape does."""
    topic = body.get("topic") or ("refunds/create" if "order_id" in body else "orders/create")
    if topic not in TOPICS:
        raise DecodeError("topic", f"must be one of {', '.join(sorted(TOPICS))}")
    return TOPICS[topic]


def _placed(body: Body) -> Placed:
    currency = currency_of(body.get("currency"))
    when = "processed_at" if body.get("processed_at") else "created_at"
    return Placed(
        moment(body["updated_at"], "updated_at") if body.get("updated_at") else "",
        bool(body.get("cancelled_at")) or body.get("financial_status") in VOID,
        minor_units(body.get("total_price"), currency, "total_price"),
        currency,
        moment(body.get(when), when),
    )


def _refunds(body: Body, context: DecodeContext) -> dict[str, PaidBack]:
    """Read the refunds that an order tells of itself."""
    listed = body.get("refunds") or []
    if not isinstance(listed, list) or len(listed) > REFUNDS_MAX:
        raise DecodeError("refunds", f"must be a list of at most {REFUNDS_MAX}")
    found: dict[str, PaidBack] = {}
    for place, each in enumerate(listed):
        if not isinstance(each, dict):
            raise DecodeError(f"refunds.{place}", "must be an object")
        found |= _refund(each, f"refunds.{place}.", context)
    return found


def _refund(refund: Body, path: str, context: DecodeContext) -> dict[str, PaidBack]:
    """Read a refund's transactions, each by its id; without any, the refund as a whole. path: where it is."""
    own_id = text_id(refund.get("id"), f"{path}id")
    when = "processed_at" if refund.get("processed_at") else "created_at"
    at = moment(refund.get(when), f"{path}{when}")
    listed = refund.get("transactions")
    if listed is None and not context.topic:
        currency = currency_of(refund.get("currency"), f"{path}currency")
        amount = minor_units(refund.get("total_price"), currency, f"{path}total_price")
        return {own_id: PaidBack(SUCCEEDED, at, amount, currency, own_id)}
    if not isinstance(listed, list) or len(listed) > REFUNDS_MAX:
        raise DecodeError(f"{path}transactions", f"must be a list of at most {REFUNDS_MAX}")
    found: dict[str, PaidBack] = {}
    for place, each in enumerate(listed):
        if not isinstance(each, dict):
            raise DecodeError(f"{path}transactions.{place}", "must be an object")
        if each.get("kind", "refund") == "refund" and each.get("test") is not True:
            number = text_id(each.get("id", place), f"{path}transactions.{place}.id")
            status, amount, currency = _transaction(each, f"{path}transactions.{place}")
            found[f"{own_id}/{number}"] = PaidBack(status, at, amount, currency, own_id)
    if sum(each.amount_minor for each in found.values()) > AMOUNT_MINOR_MAX:
        raise DecodeError(f"{path}transactions", f"must come to at most {AMOUNT_MINOR_MAX} minor units")
    return found


def _transaction(transaction: Body, path: str) -> tuple[int, int, str]:
    """Return what became of a refund's transaction, its amount and its currency."""
    status = transaction.get("status", "success")
    currency = currency_of(transaction.get("currency"), f"{path}.currency")
    amount = minor_units(transaction.get("amount"), currency, f"{path}.amount")
    return STATUSES.get(status, PENDING) if isinstance(status, str) else PENDING, amount, currency


def _names_anybody(body: Body) -> bool:
    customer = body.get("customer") or {}
    return any(customer.get(name) for _, name in CHANNELS) or any(body.get(name) for _, name in CHANNELS[1:])


def _customer(body: Body, context: DecodeContext, *, is_refund: bool) -> tuple[Identity, ...]:
    """Return who bought; () for a refund, or for an order that is signed, which names nobody.

    The order's own email and phone count only if the customer has no identity: those of a gift may be the
    recipient's.
    """
    if (is_refund or context.is_signed) and not _names_anybody(body):
        return ()
    customer = body.get("customer") or {}
    found = [(channel, customer.get(name)) for channel, name in CHANNELS]
    is_customer = any(value for _, value in found)
    if not is_customer:
        found = [(channel, body.get(name)) for channel, name in CHANNELS[1:]]
    return identities(found, context, "customer", are_verified=is_customer)


CHANNELS = (("customer", "id"), ("email", "email"), ("phone", "phone"))
