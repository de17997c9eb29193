"""The state of a shop's order, joined from any number of webhooks in any order, and amounts of money.

A shop reports an order again and again: created, paid, changed, cancelled. It also reports refunds, which may
be pending first. Each webhook has a state of the order. Joining states is commutative, associative and
idempotent, so any order of arrival gives one state.

Events are only ever added. So a change of the state is stored as the difference: an order that was counted
with 100 and is cancelled leaves `purchase_completed` 100 and `order_cancelled` 100, both at the time when the
order was placed. Features add these up, and so agree with the newest state.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from rules.leads.lead_events import ORDER_CANCELLED, ORDER_CHARGED, ORDER_REFUNDED, PURCHASE_COMPLETED

ORDER = "order"
# ISO 4217's currencies that have no decimals (JPY) or three (KWD). All others have two.
WHOLE = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"
THOUSANDTHS = "BHD IQD JOD KWD LYD OMR TND"
EXPONENTS = dict.fromkeys(WHOLE.split(), 0) | dict.fromkeys(THOUSANDTHS.split(), 3)
PENDING, FAILED, SUCCEEDED = range(3)  # the statuses of a refund; the higher one is the later


@dataclass(frozen=True, slots=True, order=True)
class PlacedOrder:
    """An order as one webhook has it. Of two, the greater one counts."""

    version: str  # a stamp, when the shop changed it; "" if the shop does not say
    is_void: bool  # cancelled, voided: it counts nothing
    amount_minor: int  # in `currency`, the shop's
    currency: str
    at: str  # a stamp
    presented_minor: int = 0  # the same total as the customer saw it
    presented_currency: str = ""  # of presented_minor; "" if the shop does not say


@dataclass(frozen=True, slots=True, order=True)
class RefundTransaction:
    """One transaction of a refund. Of two with one name, the greater one counts."""

    status: int  # PENDING, FAILED or SUCCEEDED
    at: str  # a stamp
    amount_minor: int  # in `currency`, which may be the customer's
    currency: str
    refund_id: str
    shop_minor: int = 0  # the same amount in the shop's currency
    shop_currency: str = ""  # of shop_minor; "" if the shop does not say


@dataclass(frozen=True, slots=True)
class OrderState:
    """All that webhooks have said about an order."""

    placed: PlacedOrder | None = None  # None while only refunds are known
    paid_back: Mapping[str, RefundTransaction] = field(default_factory=dict)  # by transaction
    is_deleted: bool = False  # the shop has deleted it, for good: it counts nothing, whatever comes later


@dataclass(frozen=True, slots=True)
class OrderAmount:
    """What an order or one of its refunds adds to a lead's orders."""

    at: str  # a stamp
    count: int  # 1 for an order, 0 for a refund
    amount_minor: int
    currency: str


@dataclass(frozen=True, slots=True)
class OrderChange:
    """One event that reports a difference."""

    # `order`, `refund:ID`, or `refund:ID:EUR` for what was paid back in another currency than the order's
    key: str
    event_type: str
    at: str
    amount_minor: int  # never below 0
    currency: str


def join_orders(one: OrderState, other: OrderState) -> OrderState:
    """Return the state that two states of an order give together."""
    placed = max((state.placed for state in (one, other) if state.placed), default=None)
    paid_back = dict(one.paid_back)
    for name, transaction in other.paid_back.items():
        paid_back[name] = max(paid_back.get(name, transaction), transaction)
    return OrderState(placed, paid_back, one.is_deleted or other.is_deleted)


def contradicts(one: OrderState, other: OrderState) -> bool:
    """Return whether two webhooks without a version contradict each other: nobody knows which is newer."""
    if one.placed and other.placed and one.placed.version == other.placed.version == "":
        return one.placed != other.placed
    for name in one.paid_back.keys() & other.paid_back.keys():
        first, second = one.paid_back[name], other.paid_back[name]
        if first.status == second.status and first.amount_minor != second.amount_minor:
            return True
    return False


def order_amounts(state: OrderState) -> dict[str, OrderAmount]:
    """Return what an order and its refunds add, by key (OrderChange). A refund counts once it has succeeded.

    An order that is void, deleted, or not known yet adds nothing, and neither do its refunds. A refund in the
    customer's currency counts in the shop's: the shop's own amount, or else converted at the order's rate.
    """
    placed = state.placed
    if placed is None or placed.is_void or state.is_deleted:
        return {}
    amounts = {ORDER: OrderAmount(placed.at, 1, placed.amount_minor, placed.currency)}
    for transaction, amount, currency in _in_shop_money(placed, state.paid_back.values()):
        # Amounts of two currencies are never added up, not even those of one refund.
        suffix = "" if currency == placed.currency else f":{currency}"
        key = f"refund:{transaction.refund_id}{suffix}"
        before = amounts.get(key, OrderAmount(transaction.at, 0, 0, currency))
        amounts[key] = OrderAmount(before.at, 0, before.amount_minor - amount, currency)
    return amounts


def order_changes(before: OrderState, after: OrderState) -> list[OrderChange]:
    """Return the events that report the difference of two states, by key."""
    old, new = order_amounts(before), order_amounts(after)
    changes = list[OrderChange]()
    for key in sorted({*old, *new}):
        changes += _changes_of_key(key, old.get(key), new.get(key))
    return changes


def to_text(state: OrderState) -> str:
    """Return the state of an order as its claim has it: JSON."""
    placed = _json_values(state.placed) if state.placed else None
    paid_back = {name: _json_values(transaction) for name, transaction in state.paid_back.items()}
    deleted = [True] if state.is_deleted else []
    return json.dumps([placed, paid_back, *deleted], sort_keys=True, separators=(",", ":"))


def from_text(text: str) -> OrderState:
    """Read what to_text wrote."""
    placed, paid_back, *deleted = json.loads(text)
    refunds: dict[str, Any] = {name: RefundTransaction(*values) for name, values in paid_back.items()}
    return OrderState(PlacedOrder(*placed) if placed else None, refunds, bool(deleted))


def rates_in(own: str, base: str, rates: Mapping[str, Decimal]) -> dict[str, Decimal]:
    """Return what one unit of each other currency is worth in `own`; {} if `own` has no rate.

    rates: what one unit of each is worth in `base`. Example: a pound is 1.20 dollars and a euro 1.00, so a
    pound is 1.20 euros.
    """
    worth = {**rates, base: Decimal(1)}
    if own not in worth:
        return {}
    return {currency: rate / worth[own] for currency, rate in worth.items() if currency != own}


def total_in(
    own: str, spent: Mapping[str, Decimal], rates: Mapping[str, Decimal], places: int
) -> Decimal | None:
    """Return the sum of amounts by currency in whole units of `own`; None if one of them has no rate.

    rates: what one unit of a currency is worth in `own`. places: digits after the point; rounds half to even.
    """
    foreign = {currency: amount for currency, amount in spent.items() if currency != own and amount}
    if not foreign.keys() <= rates.keys():
        return None
    total = spent.get(own, Decimal()) + sum(
        (amount * rates[currency] for currency, amount in foreign.items()), Decimal()
    )
    return total.quantize(Decimal(1).scaleb(-places), ROUND_HALF_EVEN)


def _in_shop_money(
    placed: PlacedOrder, refunds: Iterable[RefundTransaction]
) -> Iterator[tuple[RefundTransaction, int, str]]:
    """Yield (transaction, amount, currency) of those that have succeeded, in the shop's currency if known.

    If amounts are converted at the order's rate, their sum so far is rounded, and not each amount. So refunds
    of the whole order add up to its total.
    """
    presented = converted = 0
    for refund in sorted(refunds):
        if refund.status != SUCCEEDED or not refund.amount_minor:
            continue
        if refund.shop_currency:
            yield refund, refund.shop_minor, refund.shop_currency
        elif placed.presented_minor and refund.currency == placed.presented_currency != placed.currency:
            presented += refund.amount_minor
            twice = 2 * presented * placed.amount_minor
            rounded = (twice + placed.presented_minor) // (2 * placed.presented_minor)  # halves go up
            yield refund, rounded - converted, placed.currency
            converted = rounded
        else:
            yield refund, refund.amount_minor, refund.currency


def _changes_of_key(key: str, old: OrderAmount | None, new: OrderAmount | None) -> Iterator[OrderChange]:
    """Yield the events of one key. If its time or currency has changed, one takes the old amount back."""
    if old and new and (old.at, old.currency, old.count) != (new.at, new.currency, new.count):
        yield from _changes_of_key(key, old, None)
        old = None
    newest = new or old
    if newest is None or old == new:
        return
    count = (new.count if new else 0) - (old.count if old else 0)
    amount = (new.amount_minor if new else 0) - (old.amount_minor if old else 0)
    if count:
        event_type = PURCHASE_COMPLETED if count > 0 else ORDER_CANCELLED
    else:
        event_type = ORDER_CHARGED if amount > 0 else ORDER_REFUNDED
    yield OrderChange(key, event_type, newest.at, abs(amount), newest.currency)


def _json_values(part: PlacedOrder | RefundTransaction) -> list[Any]:
    """Return the values of all fields, without the last two if the shop has not said them."""
    values = [getattr(part, name) for name in part.__slots__]
    return values if values[-1] else values[:-2]
