"""A shop's orders and refunds, in the shape of Shopify's webhooks.

Fields ("?": may be missing):
- Order: id, processed_at or created_at, total_price, current_total_price?, total_outstanding?, currency,
  customer {id, email, phone}, line_items [{product_id or sku, quantity}], updated_at?, cancelled_at?,
  financial_status?, test?, refunds? [refund].
- Refund: id, order_id, processed_at or created_at, transactions [{id?, kind, amount, currency, status}] or
  total_price and currency, and customer?. Without a customer it belongs to its order's lead.
- topic?: orders/create and so on. Without it, a payload with an order_id is a refund.

An order without id, time, currency or total is refused. So is a refund without id or time, or whose
transactions lack amount or currency. Any other bad field is left out, and the webhook is accepted.

A shop reports one order many times, and rules.leads.orders joins the reports. Test orders count nothing.
orders/delete takes an order back.

An edited order has the same total_price: what is taken out of it before it is paid is a refund without
transactions, since no money goes back. current_total_price is what is left after that, and after each refund
of money. So an order counts with what is left and with the money that its refunds gave back, which each
refund then takes off. Money that the shop still owes the customer (a total_outstanding below 0) has not gone
back yet.

Money counts in the shop's currency. total_price_set and amount_set have this amount beside the one in the
customer's ("presentment") currency. A refund's transactions are in the customer's currency.

The customer of an order is verified, because the shop confirms the order of an account. An order without a
customer comes from a till, or the shop has removed the customer. Its contacts are only claimed, because
somebody typed them at the till. If it has none, it counts for the lead that another webhook of the order
names.

Customers: the webhooks of a customer, and of a consent, say what the customer wants by e-mail, text messages
or WhatsApp, and so does the customer within an order. Older shops say accepts_marketing, true or false, in
place of `subscribed` or `not_subscribed` to e-mail. An order's buyer_accepts_marketing is not read: it is
false for all who have not ticked a box. `unsubscribed` wants no more messages. Neither does who is
`not_subscribed`, `redacted` or `invalid` since a time that the shop names. Without a time these state
nothing, nor does `pending`, where the shop still waits for an answer. `subscribed` wants messages since the
time that the shop names; to text messages or WhatsApp alone, it takes back no more than a refusal of these
(rules.leads.memory). If a webhook says both, of two channels, the customer wants none. customers/merge joins
the leads of two customers.

A webhook of a consent that we cannot read, or of a merge that the shop has not made, is refused, so that an
operator finds it. Topics of other things, such as products, are left out.

Of the webhooks about customers' rights, customers/redact erases the lead of the customer and of the orders
that it names. The others are refused, so that an operator finds them.

https://shopify.dev/docs/api/admin-rest/latest/resources/order, .../refund, .../transaction
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from ingest.leads.readers import (
    AMOUNT_MINOR_MAX,
    ERASURE_REQUESTED,
    DecodeContext,
    DecodedEvent,
    DecodeError,
    ErasurePart,
    OrderPart,
    PayloadPart,
    SideFields,
    amount_in,
    currency_of,
    decimal,
    identities,
    is_absent,
    minor_units,
    moment,
    opt_out_time,
    products,
    text_id,
    usable_identities,
)
from rules.leads.identity import Identity
from rules.leads.lead_events import (
    IDENTITY_REPLACED,
    NOTIFICATIONS,
    OFF,
    ON,
    ORDER_CANCELLED,
    ORDER_REFUNDED,
    PREFERENCE_STATED,
    PURCHASE_COMPLETED,
    body_hash,
)
from rules.leads.orders import (
    EXPONENTS,
    FAILED,
    PENDING,
    SUCCEEDED,
    OrderState,
    PlacedOrder,
    RefundTransaction,
)
from rules.leads.webhook_signatures import Signature

# https://shopify.dev/docs/apps/build/webhooks/subscribe/https: over the body, with the app's client secret.
SIGNATURE = Signature("x-shopify-hmac-sha256", id_header="x-shopify-webhook-id")
TOPIC_HEADER = "x-shopify-topic"

# The body of this topic has the order's id alone.
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
# The body of this topic has only the changes. The shop also sends orders/updated, which has the order.
EDITS = "orders/edited"


class ConsentField(NamedTuple):
    """A field of a customer's consents."""

    channel: str  # "" for e-mail, which stands for all messages
    since: str  # the name of the field within it that says since when it is so


CONSENTS = {
    "email_marketing_consent": ConsentField("", "consent_updated_at"),
    "sms_marketing_consent": ConsentField("sms", "consent_updated_at"),
    "whats_app_marketing_consent": ConsentField("whatsapp", "updated_at"),
}
# Until 2022 shops said so, true or false, beside its time: not if the field that took its place is there.
ACCEPTS, ACCEPTS_SINCE = "accepts_marketing", "accepts_marketing_updated_at"
REPLACES_ACCEPTS = "email_marketing_consent"
CONSENT_NAMES = frozenset({*CONSENTS, ACCEPTS})
STATE_NAMES = ("state", "marketing_state")
CUSTOMER_TOPICS = (
    *(f"customers/{what}" for what in ("create", "update", "enable", "disable")),
    "customers_email_marketing_consent/update",
    "customers_marketing_consent/update",
    "customers_whats_app_marketing_consent/update",
)
# What each state of a consent means (None: nothing), and whether only since a time that the shop names.
STATES: dict[str, tuple[str | None, bool]] = {
    "subscribed": (ON, True),
    "not_subscribed": (OFF, True),
    "pending": (None, True),
    "unsubscribed": (OFF, False),
    "redacted": (OFF, True),
    "invalid": (OFF, True),
}
# The names of a customer's identities in all of these bodies.
CUSTOMER_FIELDS = (
    ("customer", "customer_id"),
    ("customer", "id"),
    ("email", "email_address"),
    ("email", "email"),
    ("phone", "phone_number"),
    ("phone", "phone"),
)
CONSENT = "_consent/"  # is in the topic of each consent
MERGE = "customers/merge"
MERGED_IDS = ("admin_graphql_api_customer_kept_id", "admin_graphql_api_customer_deleted_id")
CUSTOMER_GID = "gid://shopify/Customer/"
DONE, UNDER_WAY = ("completed", "complete", "succeeded", "success"), ("requested", "in_progress", "pending")
VOID = frozenset({"voided", "expired"})
NOTHING_BACK = frozenset({"pending", "authorized", "partially_paid", "paid"})  # then no money has gone back
STATUSES = {"success": SUCCEEDED, "failure": FAILED, "error": FAILED, "cancelled": FAILED}
REFUNDS_MAX = 50  # of an order
TRANSACTIONS_MAX = 50  # of a refund

# Topics of customers' rights, each with what an operator is to do; "": this system does it.
REDACT, DATA_REQUEST, SHOP_REDACT = "customers/redact", "customers/data_request", "shop/redact"
PRIVACY = {
    REDACT: "",
    DATA_REQUEST: "a customer asks for what is known of them: export the lead, and send it on",
    SHOP_REDACT: "the shop wants all of its data erased: erase its leads one by one, and take away its hook",
    "customers/delete": "the shop has deleted a customer: erase the lead, if the customer is to be forgotten",
}
KNOWN_TOPICS = frozenset({*TOPICS, *PRIVACY, *CUSTOMER_TOPICS, MERGE})
ORDERS_MAX = 1_000  # orders that one request for an erasure names
Body = dict[str, Any]
SHOP_FIELDS = frozenset({"shop_id", "shop_domain"})
REQUEST_FIELDS = frozenset({"data_request", "orders_requested"})
# Fields that an order has, and a customer has not.
OF_AN_ORDER = frozenset({"total_price", "total_price_set", "line_items", "order_id"})
# A body with one of these fields tells of an order.
ORDER_FIELDS = frozenset(
    {"total_price", "total_price_set", "currency", "line_items", "order_id", "created_at"}
)
# The channels of a customer's identities, each with its field of `customer`.
CHANNELS = (("customer", "id"), ("email", "email"), ("phone", "phone"))


class Money(NamedTuple):
    """An amount in a currency."""

    minor: int  # whole minor units
    currency: str


class Amounts(NamedTuple):
    """One amount of a body in up to three currencies."""

    stated: Money  # the body's own field; the shop's if that cannot be read
    shop_if_other: Money | None  # in the shop's currency, if `stated` is in another one
    presented: Money | None  # in the currency that the customer saw; None if the body does not say


def parts(payload: Any) -> Iterable[PayloadPart]:
    """Return a webhook as it came, but of a customer only the consents, and whose they are.

    An order's customer is a part beside the order: what the shop says of a consent, it says again and again.
    """
    if _has_consent(payload):
        return [PayloadPart(_stated_part(payload))]
    customer = payload.get("customer") if isinstance(payload, dict) else None
    if isinstance(customer, dict) and not all(is_absent(customer.get(name)) for name in CONSENT_NAMES):
        return [PayloadPart(payload), PayloadPart(_stated_part(customer), "customer")]
    return [PayloadPart(payload)]


def decode(payload: Any, context: DecodeContext) -> list[DecodedEvent]:
    """Read the order, the refund, the deletion or the request for erasure that a webhook is."""
    if context.topic and (context.topic not in KNOWN_TOPICS or context.topic == EDITS):
        if CONSENT in context.topic:
            raise DecodeError(
                "topic", f"is {context.topic}: we do not read this consent, so apply it by hand"
            )
        return []
    if not isinstance(payload, dict):
        raise DecodeError("", "must be object")
    of_customer = _of_customer(payload, context)
    if of_customer is not None:
        return of_customer
    if privacy_topic := _privacy_topic(payload, context):
        return [_erasure_request(payload, privacy_topic, context)]
    if DELETION in (context.topic, payload.get("topic")):
        return [_deletion(payload, context)]
    side = SideFields()
    event_type = _event_type(payload, side)
    if payload.get("test") is True:
        return []
    read = _refund_event if event_type == ORDER_REFUNDED else _order_event
    return [read(payload, context, side)]


def _order_event(body: Body, context: DecodeContext, side: SideFields) -> DecodedEvent:
    order_id = text_id(body.get("id"), "id")
    processed_at = _processed_at(body, "", side)
    refunds, are_whole = _refunds(body, context, side)
    placed = _placed_order(body, processed_at, refunds.values() if are_whole else None, side)
    bought = products(body.get("line_items"), "line_items", side)
    amount = amount_in(placed.currency, placed.amount_minor, context)
    return DecodedEvent(
        # A refund may have an order's id, so external ids say which of the two they are.
        external_event_id=text_id(f"order:{order_id}", "id"),
        event_type=PURCHASE_COMPLETED,
        occurred_at=processed_at,
        identities=_customer(body, context, side, is_refund=False),
        object_id=order_id,
        object_id_ref="order",
        payload={"order_id": order_id, **amount} | ({"products": bought} if bought else {}),
        order=OrderPart(order_id, OrderState(placed, refunds), tuple(bought)),
        omissions=side.omissions,
    )


def _refund_event(body: Body, context: DecodeContext, side: SideFields) -> DecodedEvent:
    refund_id, order_id = text_id(body.get("id"), "id"), text_id(body.get("order_id"), "order_id")
    processed_at = _processed_at(body, "", side)
    transactions = _refund(body, "", processed_at, context, side)
    return DecodedEvent(
        external_event_id=text_id(f"refund:{refund_id}", "id"),
        event_type=ORDER_REFUNDED,
        occurred_at=processed_at,
        identities=_customer(body, context, side, is_refund=True),
        object_id=order_id,
        object_id_ref="order",
        payload={"order_id": order_id, **_refunded_amount(transactions.values(), context)},
        order=OrderPart(order_id, OrderState(None, transactions)),
        omissions=side.omissions,
    )


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


def _of_customer(body: Body, context: DecodeContext) -> list[DecodedEvent] | None:
    """Read a body about customers: a consent, or a merge; None for any other.

    It is about customers by its topic; without one, by its shape.
    """
    topic = context.topic or body.get("topic")
    if not isinstance(topic, str) or not topic:
        topic = MERGE if set(MERGED_IDS) <= body.keys() else CUSTOMER_TOPICS[0] if _has_consent(body) else ""
    if topic == MERGE:
        return _merge(body, context)
    is_of_order = topic in TOPICS and _has_consent(body)  # as `parts` parts it from the order
    return _consent_statement(body, topic, context) if topic in CUSTOMER_TOPICS or is_of_order else None


def _has_consent(payload: Any) -> bool:
    if not isinstance(payload, dict):
        return False
    return not CONSENT_NAMES.isdisjoint(payload) and OF_AN_ORDER.isdisjoint(payload)


def _merge(body: Body, context: DecodeContext) -> list[DecodedEvent]:
    """Return the event that two customers are one person; [] while the shop has not joined them yet."""
    status = str(body.get("status") or DONE[0]).lower()
    if status in UNDER_WAY:
        return []
    if status not in DONE:
        raise DecodeError("status", f"is {status[:40]}: the shop has not joined these customers, nor do we")
    ids = [_customer_id(body.get(name), name) for name in MERGED_IDS]
    side = SideFields()
    pairs = [("customer", customer_id) for customer_id in ids]
    identities = usable_identities(pairs, context, "customer", are_verified=True, side=side)
    if len(identities) < len(MERGED_IDS):
        raise DecodeError(MERGED_IDS[1], "must name another customer than the one that is kept")
    return [
        DecodedEvent(
            external_event_id=f"merge:{body_hash(body)}",
            event_type=IDENTITY_REPLACED,
            occurred_at=context.received_at,
            identities=identities,
        )
    ]


def _customer_id(value: Any, name: str) -> str:
    """Read a customer's id, as a number or as the shop's other interface names it: gid://shopify/Customer/7."""
    customer_id = text_id(value, name).removeprefix(CUSTOMER_GID)
    if not customer_id.isascii() or not customer_id.isdigit():
        raise DecodeError(name, f"must be a customer's id, such as {CUSTOMER_GID}7")
    return customer_id


def _consent_statement(body: Body, topic: str, context: DecodeContext) -> list[DecodedEvent]:
    """Return the event that a customer states consent; [] if the body states none.

    The topic's header is not signed, so somebody may send an order's webhook once more under this topic.
    """
    if not OF_AN_ORDER.isdisjoint(body):
        raise DecodeError("topic", f"is {topic}, but the body tells of an order")
    side = SideFields()
    if CONSENT in topic and all(is_absent(body.get(name)) for name in CONSENT_NAMES):
        raise DecodeError("", f"has none of {', '.join(CONSENTS)}: we do not read this consent")
    stated = {name: side.read(_consent, body.get(name), name) for name in CONSENTS}
    told = [(*each, CONSENTS[name].channel) for name, each in stated.items() if each]
    if is_absent(body.get(REPLACES_ACCEPTS)) and (each := side.read(_acceptance, body, ACCEPTS)):
        told.append((*each, CONSENTS[REPLACES_ACCEPTS].channel))
    is_off = any(meaning == OFF for meaning, _, _ in told)
    if side.omissions and not is_off:  # what cannot be read might be an opt-out
        raise DecodeError(side.omissions[0].field, side.omissions[0].reason)
    if not any(meaning for meaning, _, _ in told):
        return []
    # What is said of all channels goes first.
    counting = [
        (not channel, at, channel) for meaning, at, channel in told if meaning == (OFF if is_off else ON)
    ]
    _, since, channel = max(counting)
    occurred_at, named_time = opt_out_time(since, "", context, side, lambda at, _: at)
    pairs = [(channel, body.get(field)) for channel, field in CUSTOMER_FIELDS]
    return [
        DecodedEvent(
            external_event_id=f"consent:{body_hash(_stated_part(body))}:{named_time[:10]}",
            event_type=PREFERENCE_STATED,
            occurred_at=occurred_at,
            identities=identities(pairs, context, "customer", are_verified=True, side=side),
            payload={
                "consent": {NOTIFICATIONS: OFF if is_off else ON},
                **({"consent_channel": channel} if channel else {}),
            },
            omissions=side.omissions,
        )
    ]


def _stated_part(body: Body) -> Body:
    """Return what a customer's body says of consent. Other fields change, and the consent is the same."""
    names = ["topic", *CONSENTS, *(field for _, field in CUSTOMER_FIELDS)]
    if is_absent(body.get(REPLACES_ACCEPTS)):
        names += [ACCEPTS, ACCEPTS_SINCE]
    return {name: body[name] for name in names if name in body}


def _consent(value: Any, name: str) -> tuple[str | None, str]:
    """Read a consent: what it means (None: nothing), and since when (a stamp, or "")."""
    fields = value if isinstance(value, dict) else {"state": value}
    state = next((each for each in map(fields.get, STATE_NAMES) if not is_absent(each)), None)
    if is_absent(state):  # who has said nothing has no such field at all
        raise DecodeError(f"{name}.state", "is missing")
    if not isinstance(state, str) or state.lower() not in STATES:
        raise DecodeError(f"{name}.state", f"must be one of {', '.join(STATES)}")
    return _since(*STATES[state.lower()], fields.get(CONSENTS[name].since), f"{name}.{CONSENTS[name].since}")


def _acceptance(body: Body, name: str) -> tuple[str | None, str] | None:
    """Read accepts_marketing as _consent reads a state."""
    if is_absent(accepts := body.get(name)):
        return None
    if not isinstance(accepts, bool):
        raise DecodeError(name, "must be true or false")
    return _since(
        *STATES["subscribed" if accepts else "not_subscribed"], body.get(ACCEPTS_SINCE), ACCEPTS_SINCE
    )


def _since(meaning: str | None, needs_time: bool, since: Any, name: str) -> tuple[str | None, str]:
    """Return what a consent means since a time that the shop names; nothing if it needs one and has none."""
    if is_absent(since):
        return (None if needs_time else meaning), ""
    try:
        return meaning, moment(since, name)
    except DecodeError:
        if needs_time and meaning:
            raise
        return meaning, ""


def _refunded_amount(transactions: Iterable[RefundTransaction], context: DecodeContext) -> dict[str, Any]:
    """Return the payload fields of a refund's sum, in the shop's currency if each transaction says it."""
    refunds = [refund for refund in transactions if refund.status == SUCCEEDED]
    if not refunds:
        return amount_in(context.currency, 0, context)
    if all(refund.shop_currency for refund in refunds):
        return amount_in(refunds[0].shop_currency, sum(refund.shop_minor for refund in refunds), context)
    return amount_in(refunds[0].currency, sum(refund.amount_minor for refund in refunds), context)


def _event_type(body: Body, side: SideFields) -> str:
    """Return the event type of a body, by its own topic or its shape. A header's topic is not signed."""
    topic, shape = body.get("topic"), "refunds/create" if "order_id" in body else "orders/create"
    if topic is not None and not isinstance(topic, str):
        side.omit("topic", "must be text")
        topic = None
    if (topic or shape) not in TOPICS:
        raise DecodeError("topic", f"must be one of {', '.join(sorted(TOPICS))}")
    return TOPICS[topic or shape]


def _processed_at(body: Body, path: str, side: SideFields) -> str:
    """Return when an order or a refund was processed, or else created; raises DecodeError without both.

    path: of the body, with a dot at its end; "" for the whole payload. So it is below, too.
    """
    if processed := side.read(moment, body.get("processed_at"), f"{path}processed_at"):
        return processed
    # The error names the field that is there.
    name = "created_at" if body.get("created_at") or not body.get("processed_at") else "processed_at"
    return moment(body.get(name), f"{path}{name}")


def _placed_order(
    body: Body, processed_at: str, refunds: Iterable[RefundTransaction] | None, side: SideFields
) -> PlacedOrder:
    """Read an order. refunds: all transactions of the body's refunds; None if not all can be read."""
    status = body.get("financial_status")
    is_cancelled = bool(body.get("cancelled_at"))
    amounts = _amounts_of(body, "total_price", "", side)
    total = amounts.shop_if_other or amounts.stated
    amount = total if refunds is None else _ordered_money(body, total, amounts.presented, refunds, side)
    placed = PlacedOrder(
        version=side.read(moment, body.get("updated_at"), "updated_at") or "",
        is_void=is_cancelled or (isinstance(status, str) and status in VOID),
        amount_minor=amount.minor,
        currency=amount.currency,
        at=processed_at,
    )
    presented = amounts.presented
    if presented is None or presented.currency == amount.currency:
        return placed
    # The rate stays that of the order's total.
    presented_minor = _share(presented.minor, amount.minor, total.minor)
    return replace(placed, presented_minor=presented_minor, presented_currency=presented.currency)


def _ordered_money(
    body: Body,
    total: Money,
    presented: Money | None,
    refunds: Iterable[RefundTransaction],
    side: SideFields,
) -> Money:
    """Return what is ordered: the current total, with the money that went back, is about to, or is owed.

    It is the whole total if the body does not say the current one, or not all in one currency.
    """
    current = side.read(lambda _, name: _amounts_of(body, name, "", side), body, "current_total_price")
    left = current and (current.shop_if_other or current.stated)
    if left is None or left.currency != total.currency:
        return total
    back = converted = transactions = 0
    for refund in refunds:
        if refund.status == FAILED:
            continue
        if refund.shop_currency == total.currency:
            back += refund.shop_minor
        elif refund.currency == total.currency:
            back += refund.amount_minor
        elif presented and refund.currency == presented.currency:
            converted, transactions = converted + refund.amount_minor, transactions + 1
        else:
            return total
    if presented:
        back += _share(converted, total.minor, presented.minor)
    owed = side.read(decimal, body.get("total_outstanding"), "total_outstanding")
    if owed is not None and owed < 0:  # paid for what was taken out since, and not given back yet
        back += int(-owed.scaleb(EXPONENTS.get(total.currency, 2)))
    ordered = left.minor + back
    # Each amount that the shop has converted may differ from ours by one minor unit.
    if left.minor <= total.minor and ordered >= total.minor - transactions:
        return total
    return Money(ordered, total.currency)


def _share(amount: int, numerator: int, denominator: int) -> int:
    """Return amount * numerator / denominator, with halves rounded up; the amount if that is nothing."""
    return (2 * amount * numerator + denominator) // (2 * denominator) if denominator else amount


def _amounts_of(body: Body, name: str, path: str, side: SideFields) -> Amounts:
    """Read an amount of a body. Raises DecodeError if neither `name` nor its set has it.

    name: `total_price` or `amount`. Its set, `total_price_set`, has the shop's currency and the customer's.
    """
    money_set = side.read(_money_set, body.get(f"{name}_set"), f"{path}{name}_set")
    shop, presented = money_set or (None, None)
    try:
        currency = currency_of(body.get("currency"), f"{path}currency")
        amount = Money(minor_units(body.get(name), currency, f"{path}{name}"), currency)
    except DecodeError as error:
        if shop is None:
            raise
        side.omit(error.field, error.reason)
        amount = shop
    return Amounts(amount, shop if shop and shop.currency != amount.currency else None, presented)


def _money_set(value: Any, name: str) -> tuple[Money, Money]:
    """Return the amount in the shop's currency, and in the one that the customer saw."""
    if not isinstance(value, dict):
        raise DecodeError(name, "must be an object")
    shop = _money(value.get("shop_money"), f"{name}.shop_money")
    presentment = value.get("presentment_money")
    return shop, shop if presentment is None else _money(presentment, f"{name}.presentment_money")


def _money(value: Any, name: str) -> Money:
    if not isinstance(value, dict):
        raise DecodeError(name, "must be an object")
    currency = currency_of(value.get("currency_code"), f"{name}.currency_code")
    return Money(minor_units(value.get("amount"), currency, f"{name}.amount"), currency)


def _refunds(
    body: Body, context: DecodeContext, side: SideFields
) -> tuple[dict[str, RefundTransaction], bool]:
    """Read an order's refunds, by transaction, and whether they are all there.

    A bad one is left out, because it also has its own webhook.
    """

    def read_refund(refund: Body, path: str) -> dict[str, RefundTransaction]:
        return _refund(refund, f"{path}.", _processed_at(refund, f"{path}.", side), context, side)

    listed = body.get("refunds")
    read = [
        side.read(read_refund, refund, path) for path, refund in side.objects(listed, "refunds", REFUNDS_MAX)
    ]
    transactions: dict[str, RefundTransaction] = {}
    for refund in read:
        transactions |= refund or {}
    if is_absent(listed):  # a webhook that asks for some fields alone
        return transactions, _word(body, "financial_status", "") in NOTHING_BACK
    are_whole = isinstance(listed, list) and len(read) == len(listed) and None not in read
    return transactions, are_whole


def _refund(
    refund: Body, path: str, processed_at: str, context: DecodeContext, side: SideFields
) -> dict[str, RefundTransaction]:
    """Read a refund's transactions by id; or the whole refund if it lists none."""
    refund_id = text_id(refund.get("id"), f"{path}id")
    listed = refund.get("transactions")
    # Shopify's own webhooks have a topic in the header, and always list transactions. Only a payload in our
    # own shape may give a total in their place.
    if listed is None and context.topic and "total_price" not in refund:
        return {}  # nothing was paid yet, so no money goes back
    if listed is None and not context.topic:
        amounts = _amounts_of(refund, "total_price", path, side)
        return {refund_id: _transaction(SUCCEEDED, processed_at, amounts, refund_id)}
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
            status = STATUSES.get(_word(body, "status", "success"), PENDING)
            transactions[f"{refund_id}/{number}"] = _transaction(status, processed_at, amounts, refund_id)
    if sum(transaction.amount_minor for transaction in transactions.values()) > AMOUNT_MINOR_MAX:
        raise DecodeError(f"{path}transactions", f"must come to at most {AMOUNT_MINOR_MAX} minor units")
    return transactions


def _transaction(status: int, processed_at: str, amounts: Amounts, refund_id: str) -> RefundTransaction:
    transaction = RefundTransaction(
        status=status,
        at=processed_at,
        amount_minor=amounts.stated.minor,
        currency=amounts.stated.currency,
        refund_id=refund_id,
    )
    if shop := amounts.shop_if_other:
        return replace(transaction, shop_minor=shop.minor, shop_currency=shop.currency)
    return transaction


def _word(transaction: Body, name: str, default: str) -> str:
    """Return a word of a fixed list, in lower case: Shopify's other interface writes them in capitals."""
    word = transaction.get(name, default)
    return word.lower() if isinstance(word, str) else ""


def _customer(
    body: Body, context: DecodeContext, side: SideFields, *, is_refund: bool
) -> tuple[Identity, ...]:
    """Return who bought; () if the body names nobody: then another webhook of the order names the lead.

    The order's own email and phone count only if the customer has no identity: those of a gift may be the
    recipient's.
    """
    if not isinstance(body.get("customer"), (dict, type(None))):
        side.omit("customer", "must be an object")
    identities = _account(body, context, side)
    if not identities:
        typed = [(channel, body.get(name)) for channel, name in (*CHANNELS[1:], ("email", "contact_email"))]
        identities = usable_identities(typed, context, "customer", are_verified=False, side=side)
    if not identities and not is_refund:
        side.omit("customer", "has no usable identity: the order counts once another webhook of it has one")
    return identities


def _account(body: Body, context: DecodeContext, side: SideFields) -> tuple[Identity, ...]:
    """Return the verified identities of a body's customer, who has an account with the shop."""
    customer = body.get("customer")
    fields = customer if isinstance(customer, dict) else {}
    pairs = [(channel, fields.get(name)) for channel, name in CHANNELS]
    return usable_identities(pairs, context, "customer", are_verified=True, side=side)


def _privacy_topic(body: Body, context: DecodeContext) -> str | None:
    """Return a body's topic of PRIVACY, without a topic the one that its shape shows; None for others."""
    topic = context.topic or body.get("topic")
    if isinstance(topic, str) and topic:
        return topic if topic in PRIVACY else None
    if "orders_to_redact" in body:
        return REDACT
    if not REQUEST_FIELDS.isdisjoint(body):
        return DATA_REQUEST
    return SHOP_REDACT if body.keys() == SHOP_FIELDS else None


def _erasure_request(body: Body, topic: str, context: DecodeContext) -> DecodedEvent:
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
    side = SideFields()
    identities = _account(body, context, side)
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
