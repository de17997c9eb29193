"""What a shop tells of an order comes to one state in any order, and the events add up to it."""

import itertools
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.leads.sources import source_named
from rules.leads.lead_events import ORDER_SIGNS
from rules.leads.orders import (
    FAILED,
    ORDER,
    PENDING,
    SUCCEEDED,
    OrderState,
    PlacedOrder,
    RefundTransaction,
    contradicts,
    from_text,
    join_orders,
    order_amounts,
    order_changes,
    rates_in,
    to_text,
    total_in,
)
from rules.leads.settings import currency_of, exchange_rates
from tests.support.vendor_bodies import shopify_order, shopify_refund
from tests.support.webhooks import CONTEXT

AT, LATER = "2026-03-01T00:00:00.000000Z", "2026-03-05T00:00:00.000000Z"
stamps = st.sampled_from([f"2026-03-0{day}T00:00:00.000000Z" for day in (1, 2, 3)])
amounts = st.sampled_from([0, 1, 500, 10_000])
currencies = st.sampled_from(["USD", "EUR"])
placed = st.builds(
    PlacedOrder, st.sampled_from(["", "1", "2", "3"]), st.booleans(), amounts, currencies, stamps
)
converted = st.builds(
    PlacedOrder,
    st.sampled_from(["1", "2"]),
    st.booleans(),
    amounts,
    st.just("USD"),
    stamps,
    amounts,
    st.just("EUR"),
)
paid_back = st.builds(
    RefundTransaction,
    st.sampled_from([PENDING, FAILED, SUCCEEDED]),
    stamps,
    amounts,
    currencies,
    st.sampled_from("ab"),
)
seen = st.builds(
    OrderState,
    st.none() | placed,
    st.dictionaries(st.sampled_from(["a/1", "a/2", "b/1"]), paid_back, max_size=3),
)


def sums(told: list[Any]) -> dict[tuple[str, str], tuple[int, int]]:
    """By date and currency: how many orders, and what amount. What comes to nothing is left out."""
    counts, amounts = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for each in told:
        count, sign = ORDER_SIGNS[each.event_type]
        counts[each.at, each.currency] += count
        amounts[each.at, each.currency] += sign * each.amount_minor
    return {key: (counts[key], amounts[key]) for key in {*counts, *amounts} if counts[key] or amounts[key]}


presented = st.builds(
    OrderState,
    st.none() | converted,
    st.dictionaries(st.sampled_from(["a/1", "b/1"]), paid_back),
    st.sampled_from([False, False, True]),
)


@given(st.lists(seen | presented, max_size=5), st.randoms(use_true_random=False))
def test_any_order_twice_is_one_state_and_its_events_add_up_to_it(
    webhooks: list[OrderState], chance: Any
) -> None:
    totals = []
    for _ in range(3):
        arrived = [*webhooks, *webhooks[:2]]
        chance.shuffle(arrived)
        state, told = OrderState(), list[Any]()
        for each in arrived:
            after = join_orders(state, each)
            assert join_orders(after, each) == after, "again is nothing new"
            told += order_changes(state, after)
            assert all(change.amount_minor >= 0 for change in told)
            state = after
        direct = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        for share in order_amounts(state).values():
            direct[0][share.at, share.currency] += share.count
            direct[1][share.at, share.currency] += share.amount_minor
        found = sums(told)
        expected = {key: (direct[0][key], direct[1][key]) for key in {*direct[0], *direct[1]}}
        assert found == {key: each for key, each in expected.items() if each != (0, 0)}
        totals.append((state, found))
    assert totals[0] == totals[1] == totals[2]


euros = st.integers(1, 10**15)


@given(
    euros, st.integers(0, 10**15), st.lists(euros, min_size=1, max_size=5), st.randoms(use_true_random=False)
)
def test_what_the_customer_got_back_in_full_comes_to_the_total_in_the_shop_s_currency(
    presented: int, total: int, parts: list[int], chance: Any
) -> None:
    """In any number of parts, whatever the rate is, and in whatever order they arrive."""
    cuts = sorted({each % presented for each in parts} - {0})
    amounts = [high - low for low, high in itertools.pairwise([0, *cuts, presented])]
    order = OrderState(PlacedOrder("1", False, total, "USD", AT, presented, "EUR"))
    refunds = [
        OrderState(None, {f"9/{at}": RefundTransaction(SUCCEEDED, LATER, amount, "EUR", f"{at}")})
        for at, amount in enumerate(amounts)
    ]
    arrived = [order, *refunds]
    chance.shuffle(arrived)
    state, told = OrderState(), list[Any]()
    for each in arrived:
        after = join_orders(state, each)
        told += order_changes(state, after)
        state = after
    assert {currency: amount for (_, currency), (_, amount) in _by_currency(told).items() if amount} == {}
    assert {each.currency for each in told} == {"USD"}
    partly = order_amounts(join_orders(order, refunds[0]))
    (back,) = (each for key, each in partly.items() if key != ORDER)
    assert abs(-back.amount_minor - Fraction(amounts[0] * total, presented)) <= Fraction(1, 2)
    assert from_text(to_text(state)) == state


def _by_currency(told: list[Any]) -> dict[tuple[str, str], tuple[int, int]]:
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for (_, currency), (count, amount) in sums(told).items():
        before = found.get(("", currency), (0, 0))
        found["", currency] = (before[0] + count, before[1] + amount)
    return found


def test_the_shop_s_word_goes_before_the_order_s_rate_and_other_currencies_stay_apart() -> None:
    order = OrderState(PlacedOrder("1", False, 11_000, "USD", AT, 10_000, "EUR"))

    def back(amount: int, currency: str, *shop: Any) -> dict[str, tuple[int, str]]:
        refund = OrderState(None, {"9/1": RefundTransaction(SUCCEEDED, LATER, amount, currency, "9", *shop)})
        found = order_amounts(join_orders(order, refund))
        return {key: (each.amount_minor, each.currency) for key, each in found.items() if key != ORDER}

    assert back(5_000, "EUR") == {"refund:9": (-5_500, "USD")}
    assert back(5_000, "EUR", 5_600, "USD") == {"refund:9": (-5_600, "USD")}
    assert back(5_000, "USD") == {"refund:9": (-5_000, "USD")}
    assert back(5_000, "GBP") == {"refund:9:GBP": (-5_000, "GBP")}


@given(st.lists(seen, max_size=4))
def test_what_is_told_comes_in_each_currency_to_what_was_paid_and_paid_back_in_it(
    webhooks: list[OrderState],
) -> None:
    state, told = OrderState(), list[Any]()
    for each in webhooks:
        after = join_orders(state, each)
        told += order_changes(state, after)
        state = after
    expected = Counter[str]()
    if state.placed and not state.placed.is_void:
        expected[state.placed.currency] += state.placed.amount_minor
        for back in state.paid_back.values():
            expected[back.currency] -= back.amount_minor if back.status == SUCCEEDED else 0
    found = Counter[str]()
    for change in told:
        found[change.currency] += ORDER_SIGNS[change.event_type][1] * change.amount_minor
    assert {name: each for name, each in found.items() if each} == {
        name: each for name, each in expected.items() if each
    }


@given(*[seen | presented] * 3)
def test_joining_is_commutative_associative_and_idempotent(
    a: OrderState, b: OrderState, c: OrderState
) -> None:
    assert to_text(join_orders(a, b)) == to_text(join_orders(b, a))
    assert join_orders(join_orders(a, b), c) == join_orders(a, join_orders(b, c))
    assert join_orders(a, a) == a == join_orders(a, OrderState())
    assert not contradicts(a, a)
    assert contradicts(a, b) is contradicts(b, a)


@given(seen | presented)
def test_what_is_written_is_read(told: OrderState) -> None:
    assert from_text(to_text(told)) == told


NEW = OrderState(PlacedOrder("1", False, 10_000, "USD", AT))


def back(amount: int, status: int = SUCCEEDED, number: int = 1) -> OrderState:
    return OrderState(None, {f"9/{number}": RefundTransaction(status, LATER, amount, "USD", "9")})


@pytest.mark.parametrize(
    ("before", "told", "expected"),
    [
        (OrderState(), NEW, [(ORDER, "purchase_completed", AT, 10_000)]),
        (NEW, OrderState(PlacedOrder("2", False, 12_000, "USD", AT)), [(ORDER, "order_charged", AT, 2_000)]),
        (
            NEW,
            OrderState(PlacedOrder("2", True, 10_000, "USD", AT)),
            [(ORDER, "order_cancelled", AT, 10_000)],
        ),
        (NEW, OrderState(PlacedOrder("0", True, 10_000, "USD", AT)), []),
        (NEW, back(3_000), [("refund:9", "order_refunded", LATER, 3_000)]),
        (NEW, back(3_000, PENDING), []),
        (join_orders(NEW, back(3_000, PENDING)), back(3_000), [("refund:9", "order_refunded", LATER, 3_000)]),
        (join_orders(NEW, back(3_000)), back(500, number=2), [("refund:9", "order_refunded", LATER, 500)]),
        (
            join_orders(NEW, back(3_000)),
            OrderState(PlacedOrder("2", True, 10_000, "USD", AT)),
            [(ORDER, "order_cancelled", AT, 10_000), ("refund:9", "order_charged", LATER, 3_000)],
        ),
        (
            back(3_000),
            NEW,
            [(ORDER, "purchase_completed", AT, 10_000), ("refund:9", "order_refunded", LATER, 3_000)],
        ),
        (OrderState(PlacedOrder("2", True, 10_000, "USD", AT)), NEW, []),
    ],
)
def test_what_is_told_is_the_difference(before: OrderState, told: OrderState, expected: list[Any]) -> None:
    found = order_changes(before, join_orders(before, told))
    assert [(each.key, each.event_type, each.at, each.amount_minor) for each in found] == expected


AMOUNTS = st.decimals(min_value=-10_000, max_value=10_000, places=2)
SPENT = st.dictionaries(st.sampled_from(["USD", "EUR", "JPY", "BRL"]), AMOUNTS)
RATES = st.dictionaries(
    st.sampled_from(["EUR", "JPY", "BRL"]), st.decimals(min_value="0.01", max_value=100, places=4)
)


@given(SPENT, RATES)
def test_a_total_is_the_exact_sum_or_there_is_none(
    spent: dict[str, Decimal], rates: dict[str, Decimal]
) -> None:
    lacking = [each for each, amount in spent.items() if amount and each != "USD" and each not in rates]
    total = total_in("USD", spent, rates, 2)
    assert (total is None) == bool(lacking)
    if total is not None:
        exact = sum(
            (amount * (Decimal(1) if each == "USD" else rates.get(each, Decimal())))
            for each, amount in spent.items()
        )
        assert abs(total - exact) <= Decimal("0.005")
        assert total.as_tuple().exponent == -2


def test_own_money_needs_no_rate_and_a_currency_without_one_gives_no_total() -> None:
    assert total_in("USD", {"USD": Decimal("11.77")}, {}, 2) == Decimal("11.77")
    assert total_in("USD", {}, {}, 2) == Decimal("0.00")
    both = {"USD": Decimal("11.77"), "EUR": Decimal("6.50")}
    assert total_in("USD", both, {}, 2) is None
    assert total_in("USD", both, {"EUR": Decimal("1.1")}, 2) == Decimal("18.92")
    assert total_in("JPY", both, {"EUR": Decimal(160), "USD": Decimal(150)}, 0) == Decimal(2806)


def test_an_organization_s_own_currency_or_everybody_s() -> None:
    setting = "USD acme=EUR shop.br=BRL"
    assert [currency_of(setting, each) for each in ("acme", "shop.br", "other", None)] == [
        *("EUR", "BRL", "USD", "USD")
    ]
    rates = {"EUR": Decimal("1.08"), "GBP": Decimal("1.35")}
    assert rates_in("EUR", "USD", rates)["GBP"] == Decimal("1.25")
    assert rates_in("USD", "USD", rates) == rates
    assert rates_in("BRL", "USD", rates) == {}


def test_rates_are_read_and_a_bad_one_is_named() -> None:
    assert exchange_rates("EUR=1.08  JPY=0.0067") == {"EUR": Decimal("1.08"), "JPY": Decimal("0.0067")}
    assert exchange_rates("") == {}
    for bad in ("EUR", "EUR=0", "EUR=-1", "eur=1", "EUR=1.08,JPY=1", "EUR=1 EUR=2", "EUR=1e3", "EUR=١"):
        with pytest.raises(ValueError, match=r"ExchangeRates: .* is not one rate"):
            exchange_rates(bad)


WHEN = datetime(2026, 3, 1, 10, tzinfo=UTC)
CREATED = shopify_order(7, WHEN, "100.00", financial_status="pending")
REMOVED = shopify_refund(1, 7, WHEN, "0.00", transactions=[])
BACK = shopify_refund(2, 7, WHEN, "30.00")
IN_EUROS = {"amount": "90.00", "currency_code": "EUR"}


def edited(minute: int, left: str, *refunds: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The order as it is told after an edit: its total_price is what it was, or more."""
    at = (WHEN + timedelta(minutes=minute)).isoformat()
    shop = {"amount": left, "currency_code": "USD"}
    sets = {"current_total_price_set": {"shop_money": shop, "presentment_money": shop}}
    return {**CREATED, "updated_at": at, "current_total_price": left, **sets, "refunds": [*refunds], **more}


def in_euros(body: dict[str, Any]) -> dict[str, Any]:
    """The same of a customer who pays in euros, one of which is 1.11 dollars."""
    sets = {
        "shop_money": {"amount": body["total_price"], "currency_code": "USD"},
        "presentment_money": IN_EUROS,
    }
    return {**body, "total_price_set": sets, "presentment_currency": "EUR"}


FAILED_REFUND = shopify_refund(3, 7, WHEN, "30.00", "failure")
PENDING_REFUND = shopify_refund(3, 7, WHEN, "30.00", "pending")
BACK_IN_EUROS = shopify_refund(2, 7, WHEN, "27.00", currency="EUR")
NO_LIST = {name: value for name, value in REMOVED.items() if name != "transactions"}
EDITED: list[tuple[str, int, list[dict[str, Any]]]] = [
    ("an item is removed before payment", 6_000,
     [CREATED, edited(1, "60.00", REMOVED), edited(2, "60.00", REMOVED, financial_status="paid"), REMOVED]),
    ("the refund has no list", 6_000, [CREATED, edited(1, "60.00", NO_LIST), NO_LIST]),
    ("the order does not list refunds, and none can be", 6_000,
     [CREATED, edited(1, "60.00", refunds=None), edited(2, "60.00", refunds=None, financial_status="paid"), REMOVED]),
    ("the order does not list the refunds that it has", 6_000,
     [CREATED, edited(1, "60.00", refunds=None, financial_status="partially_refunded"), shopify_refund(4, 7, WHEN, "40.00")]),
    ("a discount is added before payment", 9_000, [CREATED, edited(1, "90.00"), edited(2, "90.00", financial_status="paid")]),
    ("it is exchanged for something cheaper", 8_000,
     [CREATED, edited(1, "80.00", REMOVED, shopify_refund(5, 7, WHEN, "20.00"), total_outstanding="0.00")]),
    ("an item is added", 13_000, [CREATED, edited(1, "130.00", total_price="130.00")]),
    ("an item is added, and the total is that of before", 13_000, [CREATED, edited(1, "130.00")]),
    ("one is removed before payment, money goes back later", 3_000,
     [CREATED, edited(1, "60.00", REMOVED), edited(2, "30.00", REMOVED, BACK), BACK]),
    ("money goes back for an item", 7_000, [CREATED, edited(1, "70.00", BACK), BACK]),
    ("money goes back, and the current total does not say so", 7_000, [CREATED, edited(1, "100.00", BACK), BACK]),
    ("money is about to go back", 10_000, [CREATED, edited(1, "70.00", PENDING_REFUND), PENDING_REFUND]),
    ("money did not go back", 10_000, [CREATED, edited(1, "100.00", FAILED_REFUND), FAILED_REFUND]),
    ("an item comes back after payment, and its money has not gone back", 10_000,
     [CREATED, edited(1, "60.00", REMOVED, financial_status="paid", total_outstanding="-40.00")]),
    ("its money has gone back", 7_000,
     [CREATED, edited(1, "70.00", REMOVED, financial_status="paid", total_outstanding="-30.00"),
      edited(2, "70.00", REMOVED, BACK, total_outstanding="0.00"), BACK]),
    ("it is edited, and not all is paid yet", 6_000,
     [CREATED, edited(1, "60.00", REMOVED, financial_status="partially_paid", total_outstanding="20.00")]),
    ("all is removed before payment", 0, [CREATED, edited(1, "0.00", REMOVED)]),
    ("it is edited and cancelled before payment", 0,
     [CREATED, edited(1, "60.00", REMOVED), edited(2, "60.00", REMOVED, cancelled_at=WHEN.isoformat())]),
    ("it is edited and voided", 0, [edited(1, "60.00", REMOVED), edited(2, "0.00", financial_status="voided")]),
    ("it is removed and put back", 10_000, [CREATED, edited(1, "60.00", REMOVED), edited(2, "100.00")]),
    ("a part is paid", 6_000, [CREATED, edited(1, "60.00", REMOVED, financial_status="partially_paid")]),
    ("it is paid in euros, and a part is removed before", 6_000, [in_euros(CREATED), in_euros(edited(1, "60.00", REMOVED))]),
    ("money goes back in euros", 7_000, [in_euros(CREATED), in_euros(edited(1, "70.00", BACK_IN_EUROS)), BACK_IN_EUROS]),
    ("an item is removed, and money goes back in euros", 3_000,
     [in_euros(CREATED), in_euros(edited(1, "30.00", REMOVED, BACK_IN_EUROS)), BACK_IN_EUROS]),
    ("the current total cannot be read", 10_000, [CREATED, edited(1, "much", REMOVED, current_total_price_set=None)]),
    ("not all refunds can be read", 7_000, [CREATED, edited(1, "30.00", {"id": None}, BACK), BACK]),
]  # fmt: skip


@pytest.mark.parametrize(("what", "spent", "webhooks"), EDITED, ids=[what for what, _, _ in EDITED])
def test_an_edited_order_counts_what_is_left_of_it(
    what: str, spent: int, webhooks: list[dict[str, Any]]
) -> None:
    """In any order of arrival, and each told twice."""
    context = replace(CONTEXT, topic="orders/updated", is_signed=True)
    states = []
    for body in webhooks:
        topic = "refunds/create" if "order_id" in body else "orders/updated"
        (event,) = source_named("ecommerce").decode(body, replace(context, topic=topic))
        assert event.order
        states.append(event.order.state)
    for arrived in itertools.permutations(states):
        state, told = OrderState(), list[Any]()
        for each in (*arrived, *arrived[:1], *arrived):
            after = join_orders(state, each)
            told += order_changes(state, after)
            state = after
        found = {currency: amount for (_, currency), (_, amount) in _by_currency(told).items() if amount}
        assert found == ({"USD": spent} if spent else {}), what
