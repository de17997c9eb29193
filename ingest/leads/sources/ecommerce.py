"""A shop's orders and refunds, in the shape of Shopify's webhooks.

Fields ("?": may be missing):
- Order: id, processed_at or created_at, total_price, currency, customer {id, email, phone}, line_items
  [{product_id or sku, quantity}], updated_at?, cancelled_at?, financial_status?, test?, refunds? [refund].
- Refund: id, order_id, processed_at or created_at, transactions [{id?, kind, amount, currency, status}] or
  total_price and currency, and customer?. Without a customer it belongs to its order's lead.
- topic?: orders/create and so on. Without it, a payload with an order_id is a refund.

What is refused: an order without id, time, currency or total, and a refund without the same of its
transactions. Any other bad field is left out, and does not refuse the webhook.

What counts: A shop reports one order many times, and rules.leads.orders joins the reports. Test orders count
nothing. orders/delete takes an order back.

Money counts in the shop's currency. total_price_set and amount_set have this amount beside the one in the
customer's ("presentment") currency. A refund's transactions are in the customer's currency.

Who bought: The customer is verified, because the shop confirms the order of an account. An order without a
customer is a till's, or the shop has removed the customer. Its contacts are only claimed, because somebody
typed them at the till. If it has none, it counts for the lead that another webhook of this order names.

Requests of the customers themselves: ingest/leads/shop_privacy.py.

https://shopify.dev/docs/api/admin-rest/latest/resources/order, .../refund, .../transaction
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ingest.leads.payloads import DecodeContext, DecodedEvent, DecodeError, OrderPart
from ingest.leads.readers import (
    AMOUNT_MINOR_MAX,
    SideFields,
    amount_in,
    currency_of,
    minor_units,
    moment,
    products,
    text_id,
    usable_identities,
)
from ingest.leads.shop_privacy import CHANNELS, ORDER_FIELDS, PRIVACY, Body, erasure_request, privacy_topic
from rules.leads.hooks import Signature
from rules.leads.identity import Identity
from rules.leads.lead_events import ORDER_CANCELLED, ORDER_REFUNDED, PURCHASE_COMPLETED
from rules.leads.orders import FAILED, PENDING, SUCCEEDED, OrderState, PlacedOrder, RefundTransaction

# https://shopify.dev/docs/apps/build/webhooks/subscribe/https: over the body, with the app's client secret.
SIGNATURE = Signature("x-shopify-hmac-sha256", id_header="x-shopify-webhook-id")
TOPIC_HEADER = "x-shopify-topic"

# The body has the order's id alone.
DELETION = "orders/delete"
# `edited` may only be a body's own topic: a webhook whose header says so is left out (EDITS).
ORDERS = ("create", "updated", "paid", "edited", "cancelled", "fulfilled", "partially_fulfilled")
TOPICS = {
    **{f"orders/{order}": PURCHASE_COMPLETED for order in ORDERS},
    "purchase_completed": PURCHASE_COMPLETED,
    "refunds/create": ORDER_REFUNDED,
    "order_refunded": ORDER_REFUNDED,
    DELETION: ORDER_CANCELLED,
}
# The body has only the changes. The shop also sends orders/updated, which has the order.
EDITS = "orders/edited"
VOID = frozenset({"voided", "expired"})
STATUSES = {"success": SUCCEEDED, "failure": FAILED, "error": FAILED, "cancelled": FAILED}
REFUNDS_MAX = 50  # of an order
TRANSACTIONS_MAX = 50  # of a refund
Money = tuple[int, str]  # minor units, currency


class Amounts(NamedTuple):
    """One amount of a body in up to three currencies."""

    own: Money  # as the body itself says it
    shop_if_other: Money | None  # in the shop's currency, if this is another one
    customer: Money | None  # in the currency that the customer saw; None if the body does not say


def decode(payload: Any, context: DecodeContext) -> list[DecodedEvent]:
    """Read the order or the refund. A refund may have an order's id, so external ids say which: `order:7`."""
    if context.topic and (context.topic not in {*TOPICS, *PRIVACY} or context.topic == EDITS):
        return []
    if not isinstance(payload, dict):
        raise DecodeError("", "must be object")
    body, side = payload, SideFields()
    if topic := privacy_topic(body, context):
        return [erasure_request(body, topic, context)]
    if DELETION in (context.topic, body.get("topic")):
        return [_deletion(body, context)]
    is_refund = _kind(body, side) == ORDER_REFUNDED
    if body.get("test") is True:
        return []
    own_id = text_id(body.get("id"), "id")
    order_id = text_id(body.get("order_id"), "order_id") if is_refund else own_id
    at = _processed_at(body, "", side)
    paid_back = _refund(body, "", at, context, side) if is_refund else _refunds(body, context, side)
    placed = None if is_refund else _placed_order(body, at, side)
    bought = [] if is_refund else products(body.get("line_items"), "line_items", side)
    return [
        DecodedEvent(
            external_event_id=text_id(f"{'refund' if is_refund else 'order'}:{own_id}", "id"),
            event_type=ORDER_REFUNDED if is_refund else PURCHASE_COMPLETED,
            occurred_at=at,
            identities=_customer(body, context, side, is_refund=is_refund),
            object_id=order_id,
            object_id_ref="order",
            payload={
                "order_id": order_id,
                **_amount_fields(placed, paid_back, context),
                **({"products": bought} if bought else {}),
            },
            order=OrderPart(order_id, OrderState(placed, paid_back), tuple(bought)),
            omissions=side.omissions,
        )
    ]


def _deletion(body: Body, context: DecodeContext) -> DecodedEvent:
    """Return the event of an order that the shop has deleted.

    The topic's header is not signed, so somebody may send an order's webhook once more under this topic.
    Such a body is refused, unless the body itself has the topic.
    """
    if "topic" not in body and not ORDER_FIELDS.isdisjoint(body):
        raise DecodeError("topic", f"is {DELETION}, but the body tells of an order: it has more than its id")
    order_id = text_id(body.get("id"), "id")
    return DecodedEvent(
        external_event_id=text_id(f"order:{order_id}", "id"),
        event_type=ORDER_CANCELLED,
        occurred_at=context.received_at,
        identities=(),
        object_id=order_id,
        object_id_ref="order",
        payload={"order_id": order_id},
        order=OrderPart(order_id, OrderState(is_deleted=True)),
    )


def _amount_fields(
    placed: PlacedOrder | None, paid_back: Mapping[str, RefundTransaction], context: DecodeContext
) -> dict[str, Any]:
    """Return the payload fields of the amount that this webhook has: the order's, or the refund's."""
    if placed:
        return amount_in(placed.currency, placed.amount_minor, context)
    refunds = [refund for refund in paid_back.values() if refund.status == SUCCEEDED]
    if not refunds:
        return amount_in(context.currency, 0, context)
    if all(refund.shop_currency for refund in refunds):
        return amount_in(refunds[0].shop_currency, sum(refund.shop_minor for refund in refunds), context)
    return amount_in(refunds[0].currency, sum(refund.amount_minor for refund in refunds), context)


def _kind(body: Body, side: SideFields) -> str:
    """Return the event type of a body, by its own topic or its shape. A header's topic is not signed."""
    topic, shape = body.get("topic"), "refunds/create" if "order_id" in body else "orders/create"
    if topic is not None and not isinstance(topic, str):
        side.omit("topic", "must be text")
        topic = None
    if (topic or shape) not in TOPICS:
        raise DecodeError("topic", f"must be one of {', '.join(sorted(TOPICS))}")
    return TOPICS[topic or shape]


def _processed_at(body: Body, path: str, side: SideFields) -> str:
    """Return when an order or a refund was processed, or else created; raises DecodeError without both."""
    if processed := side.read(moment, body.get("processed_at"), f"{path}processed_at"):
        return processed
    name = "created_at" if body.get("created_at") or not body.get("processed_at") else "processed_at"
    return moment(body.get(name), f"{path}{name}")


def _placed_order(body: Body, at: str, side: SideFields) -> PlacedOrder:
    status = body.get("financial_status")
    amounts = _amounts_of(body, "total_price", "", side)
    amount, currency = amounts.shop_if_other or amounts.own
    presented = amounts.customer
    return PlacedOrder(
        side.read(moment, body.get("updated_at"), "updated_at") or "",
        bool(body.get("cancelled_at")) or (isinstance(status, str) and status in VOID),
        amount,
        currency,
        at,
        *(presented if presented and presented[1] != currency else ()),
    )


def _amounts_of(body: Body, name: str, path: str, side: SideFields) -> Amounts:
    """Read an amount of a body. Raises DecodeError if neither `name` nor its set has it.

    name: `total_price` or `amount`; `total_price_set` has both currencies. path: of the body.
    """
    both = side.read(_money_set, body.get(f"{name}_set"), f"{path}{name}_set")
    shop, presented = both or (None, None)
    try:
        currency = currency_of(body.get("currency"), f"{path}currency")
        amount = minor_units(body.get(name), currency, f"{path}{name}"), currency
    except DecodeError as error:
        if shop is None:
            raise
        side.omit(error.field, error.reason)
        amount = shop
    return Amounts(amount, shop if shop and shop[1] != amount[1] else None, presented)


def _money_set(value: Any, name: str) -> tuple[Money, Money]:
    """Read an amount in the shop's currency and in the customer's."""
    if not isinstance(value, dict):
        raise DecodeError(name, "must be an object")
    shop = _money(value.get("shop_money"), f"{name}.shop_money")
    presentment = value.get("presentment_money")
    return shop, shop if presentment is None else _money(presentment, f"{name}.presentment_money")


def _money(value: Any, name: str) -> Money:
    if not isinstance(value, dict):
        raise DecodeError(name, "must be an object")
    currency = currency_of(value.get("currency_code"), f"{name}.currency_code")
    return minor_units(value.get("amount"), currency, f"{name}.amount"), currency


def _refunds(body: Body, context: DecodeContext, side: SideFields) -> dict[str, RefundTransaction]:
    """Read the refunds that an order lists. A bad one is left out, because it also has its own webhook."""

    def read(refund: Body, path: str) -> dict[str, RefundTransaction]:
        return _refund(refund, f"{path}.", _processed_at(refund, f"{path}.", side), context, side)

    transactions: dict[str, RefundTransaction] = {}
    for path, refund in side.objects(body.get("refunds"), "refunds", REFUNDS_MAX):
        transactions |= side.read(read, refund, path) or {}
    return transactions


def _refund(
    refund: Body, path: str, at: str, context: DecodeContext, side: SideFields
) -> dict[str, RefundTransaction]:
    """Read a refund's transactions by id; or the refund as a whole if it lists none. path: of the refund."""
    own_id = text_id(refund.get("id"), f"{path}id")
    listed = refund.get("transactions")
    # Shopify's own webhooks have a topic in the header, and always list transactions. Only a payload in our
    # own shape may give a total in their place.
    if listed is None and not context.topic:
        amounts = _amounts_of(refund, "total_price", path, side)
        return {own_id: _transaction(SUCCEEDED, at, amounts, own_id)}
    if not isinstance(listed, list) or len(listed) > TRANSACTIONS_MAX:
        raise DecodeError(f"{path}transactions", f"must be a list of at most {TRANSACTIONS_MAX}")
    transactions: dict[str, RefundTransaction] = {}
    for index, body in enumerate(listed):
        body_path = f"{path}transactions.{index}"
        if not isinstance(body, dict):
            raise DecodeError(body_path, "must be an object")
        if _word(body, "kind", "refund") == "refund" and body.get("test") is not True:
            number = side.read(text_id, body.get("id"), f"{body_path}.id") or str(index)
            amounts = _amounts_of(body, "amount", f"{body_path}.", side)
            transactions[f"{own_id}/{number}"] = _transaction(_status(body), at, amounts, own_id)
    if sum(transaction.amount_minor for transaction in transactions.values()) > AMOUNT_MINOR_MAX:
        raise DecodeError(f"{path}transactions", f"must come to at most {AMOUNT_MINOR_MAX} minor units")
    return transactions


def _transaction(status: int, at: str, amounts: Amounts, refund_id: str) -> RefundTransaction:
    shop = amounts.shop_if_other or ()
    return RefundTransaction(status, at, *amounts.own, refund_id, *shop)


def _status(transaction: Body) -> int:
    """Return what became of a refund's transaction."""
    return STATUSES.get(_word(transaction, "status", "success"), PENDING)


def _word(transaction: Body, name: str, default: str) -> str:
    """Return a word of a fixed list, in lower case: Shopify's other interface has them in capitals."""
    given = transaction.get(name, default)
    return given.lower() if isinstance(given, str) else ""


def _customer(
    body: Body, context: DecodeContext, side: SideFields, *, is_refund: bool
) -> tuple[Identity, ...]:
    """Return who bought; () if the body names nobody: then it counts for the lead that another one names.

    The order's own email and phone count only if the customer has no identity: those of a gift may be the
    recipient's.
    """
    customer = body.get("customer")
    if customer is not None and not isinstance(customer, dict):
        side.omit("customer", "must be an object")
    fields = customer if isinstance(customer, dict) else {}
    pairs = [(channel, fields.get(name)) for channel, name in CHANNELS]
    identities = usable_identities(pairs, context, "customer", are_verified=True, side=side)
    if not identities:
        typed = [(channel, body.get(name)) for channel, name in (*CHANNELS[1:], ("email", "contact_email"))]
        identities = usable_identities(typed, context, "customer", are_verified=False, side=side)
    if not identities and not is_refund:
        side.omit("customer", "has no usable identity: the order counts once another webhook of it has one")
    return identities
