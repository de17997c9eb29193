"""Orders as shops have them, from the webhook's body to the lead's features, in any order of arrival."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.platform.queues import PoisonMessage
from ingest.leads.lead_accept import read_envelope
from ingest.leads.sources import source_named
from rules.days import stamp
from rules.leads.feature_items import evaluate_features
from rules.leads.features import BY_NAME, Input
from rules.leads.identity import Identity
from rules.leads.lead_events import LeadEvent
from rules.leads.series import EMPTY_STATE, SERIES_INPUTS, add_contribution, build_state, contributions
from tests.support.lead_site import Died, Site
from tests.support.vendor_bodies import shopify_order, shopify_refund, shopify_sample
from tests.support.webhooks import NOW

pytestmark = pytest.mark.xdist_group("identity")
AT = datetime(2026, 3, 1, 10, tzinfo=UTC)
NUMBERS = itertools.count(1)


def later(minutes: int) -> str:
    return (AT + timedelta(minutes=minutes)).isoformat()


def signed(site: Site, body: dict[str, Any], topic: str) -> None:
    """What the door for signed webhooks queues."""
    site.send(body, topic=topic, is_signed=True, delivery_id="d")


def features(site: Site) -> dict[str, Any]:
    """By the stored events; and the same one event at a time, or by building anew where that is asked for."""
    stored = site.of_source("ecommerce")
    state = build_state(stored, NOW)
    assert state == step_by_step(stored)
    names = (
        "monetary_total",
        "frequency_purchases_90d",
        "has_purchased",
        "average_order_value",
        "days_since_last_purchase",
    )
    return {
        **evaluate_features([BY_NAME[name] for name in names], state, (), NOW),
        "foreign": state[Input.PURCHASES].foreign,
        "leads": {each.lead_organization_id for each in stored},
    }


def step_by_step(stored: list[LeadEvent]) -> Any:
    state = dict(EMPTY_STATE)
    for place, event in enumerate(stored):
        for name, given in contributions(event).items():
            after = add_contribution(state[name], name, given, NOW)
            state[name] = after if after is not None else build_state(stored[: place + 1], NOW)[name]
    return {name: state[name] for name in SERIES_INPUTS}


def story(order: int, refund: int) -> list[tuple[dict[str, Any], str]]:
    """Created, paid, changed to 120, 20 paid back (pending, then success), told again by the order itself."""
    pending = shopify_refund(refund, order, AT + timedelta(days=1), "20.00", "pending")
    success = shopify_refund(refund, order, AT + timedelta(days=1), "20.00")
    return [
        (shopify_order(order, AT, "100.00", financial_status="pending"), "orders/create"),
        (shopify_order(order, AT, "100.00", updated_at=later(1)), "orders/paid"),
        (shopify_order(order, AT, "120.00", updated_at=later(2)), "orders/updated"),
        (pending, "refunds/create"),
        (success, "refunds/create"),
        (shopify_order(order, AT, "120.00", updated_at=later(9), refunds=[success]), "orders/updated"),
    ]


def test_any_order_of_arrival_gives_one_answer(site: Site) -> None:
    answers, base = set(), site.organization
    webhooks = [*range(6)]
    for number, order in enumerate([webhooks, webhooks[::-1], [4, 0, 5, 2, 1, 3], [3, 5, 0, 0, 4, 2, 1, 1]]):
        site.organization = f"{base}-{number}"
        told = story(7, 9)
        for place in order:
            signed(site, *told[place])
        found = features(site)
        assert len(found.pop("leads")) == 1
        answers.add(str(found))
    (answer,) = answers
    assert answer == str({"monetary_total": 10_000, "frequency_purchases_90d": 1, "has_purchased": True,
                          "average_order_value": 10_000, "days_since_last_purchase": 9, "foreign": {}})  # fmt: skip


@pytest.mark.parametrize("reverse", [False, True])
def test_a_cancelled_order_counts_nothing_nor_does_what_was_paid_back(site: Site, reverse: bool) -> None:
    void = shopify_order(
        7, AT, "120.00", updated_at=later(20), cancelled_at=later(20), financial_status="voided"
    )
    told = [*story(7, 9), (void, "orders/cancelled")]
    for body, topic in reversed(told) if reverse else told:
        signed(site, body, topic)
    found = features(site)
    assert (found["monetary_total"], found["frequency_purchases_90d"], found["has_purchased"]) == (
        0,
        0,
        False,
    )
    assert found["days_since_last_purchase"] is None


@pytest.mark.parametrize(
    "dies_after",
    [None, 5],
)
def test_a_cancellation_with_more_changes_than_a_transaction_takes_is_counted_whole(
    site: Site, dies_after: int | None
) -> None:
    refunds = [shopify_refund(number, 7, AT + timedelta(days=1), "0.50") for number in range(1, 121)]
    for minute, part in enumerate((refunds[:50], refunds[50:100], refunds[100:]), 1):
        signed(site, shopify_order(7, AT, "100.00", updated_at=later(minute), refunds=part), "orders/updated")
    assert features(site)["monetary_total"] == 4_000
    void = shopify_order(7, AT, "100.00", updated_at=later(20), cancelled_at=later(20))
    if dies_after is not None:
        site.life.steps_left = dies_after
        with pytest.raises(Died):
            signed(site, void, "orders/cancelled")
        site.life.steps_left = None
        assert len(site.of_source("ecommerce")) not in (121, 242), "it died between the transactions"
    signed(site, void, "orders/cancelled")
    assert (features(site)["monetary_total"], features(site)["has_purchased"]) == (0, False)
    signed(site, void, "orders/cancelled")
    assert len(site.of_source("ecommerce")) == 242


def test_the_sample_order_and_orders_of_nobody_leave_nothing(site: Site) -> None:
    signed(site, shopify_sample(AT), "orders/create")
    till = shopify_order(8, AT, email=None, contact_email=None, phone=None, customer=None)
    signed(site, till, "orders/create")
    signed(site, shopify_order(9, AT, test=True), "orders/paid")
    signed(site, {"id": 1, "line_items": []}, "carts/update")
    assert site.stored() == []
    assert source_named("ecommerce").decode(shopify_sample(AT), context_of(site)) == []


@pytest.mark.parametrize("order", list(itertools.permutations(range(3)))[::2])
def test_an_order_whose_customer_the_shop_takes_away_is_still_its_lead_s(
    site: Site, order: tuple[int, ...]
) -> None:
    nobody = {"email": None, "phone": None, "customer": None, "contact_email": None}
    webhooks = [
        (shopify_order(7, AT, "100.00"), "orders/create"),
        (shopify_order(7, AT, "60.00", updated_at=later(9), **nobody), "orders/updated"),
        (shopify_refund(9, 7, AT, "20.00"), "refunds/create"),
    ]
    for place in order:
        signed(site, *webhooks[place])
        signed(site, *webhooks[place])
    assert features(site)["monetary_total"] == 4_000
    void = shopify_order(7, AT, "60.00", updated_at=later(20), cancelled_at=later(20), **nobody)
    signed(site, void, "orders/cancelled")
    assert (features(site)["monetary_total"], features(site)["has_purchased"]) == (0, False)


@pytest.mark.parametrize(
    ("topic", "body"),
    [
        ("fulfillment_events/create", {"id": 1, "shop_id": 1, "order_id": 7, "status": "in_transit"}),
        ("inventory_levels/update", {"inventory_item_id": 1, "available": 2}),
        ("orders/edited", {"order_edit": {"id": 1, "order_id": 7, "line_items": {"additions": []}}}),
    ],
)
def test_what_a_shop_tells_of_other_things_is_left_out(site: Site, topic: str, body: dict[str, Any]) -> None:
    signed(site, body, topic)
    assert site.stored() == []


@pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[::8])
def test_an_order_that_the_shop_deletes_counts_nothing_whatever_comes_later(
    site: Site, order: tuple[int, ...]
) -> None:
    webhooks = [
        (shopify_order(7, AT, "50.00"), "orders/create"),
        (shopify_refund(9, 7, AT, "20.00"), "refunds/create"),
        ({"id": 7}, "orders/delete"),
        (shopify_order(7, AT, "60.00", updated_at=later(9)), "orders/updated"),
    ]
    for place in order:
        signed(site, *webhooks[place])
        signed(site, *webhooks[place])
    found = features(site)
    assert (found["monetary_total"], found["frequency_purchases_90d"]) == (0, 0)
    signed(site, shopify_order(8, AT, "5.00"), "orders/create")
    assert features(site)["monetary_total"] == 500, "and no other order"


@pytest.mark.parametrize(
    ("topic", "body", "reason"),
    [
        ("orders/delete", shopify_order(7, AT, "50.00"), "the body tells of an order"),
        ("orders/delete", {"id": None}, "id is missing"),
        ("customers/redact", shopify_order(7, AT, "50.00"), "nobody is erased"),
        ("customers/redact", {"id": 1, "email": "jon7@example.com"}, "nobody is erased"),
        ("customers/redact", {"shop_id": 1, "shop_domain": "a", "customer": {}}, "names nobody"),
        (
            "customers/redact",
            {"shop_id": 1, "customer": {"id": 2}, "data_request": {"id": 3}},
            "export the lead",
        ),
        (
            "customers/data_request",
            {"shop_id": 1, "customer": {"id": 2}, "data_request": {"id": 3}},
            "export the lead",
        ),
        ("shop/redact", {"shop_id": 1, "shop_domain": "a.example"}, "erase its leads"),
        ("customers/delete", {"id": 115310627314723954}, "deleted a customer"),
    ],
)
def test_what_is_not_carried_out_is_kept_for_an_operator_and_changes_nothing(
    site: Site, topic: str, body: dict[str, Any], reason: str
) -> None:
    signed(site, shopify_order(7, AT, "50.00"), "orders/create")
    with pytest.raises(PoisonMessage, match=reason):
        signed(site, body, topic)
    assert features(site)["monetary_total"] == 5_000


@pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[::3])
def test_guests_whom_the_shop_joins_are_one_lead(site: Site, order: tuple[int, ...]) -> None:
    """Three times the same person ordered, each time as another customer; two of them have one address."""

    def bought(number: int, address: str) -> dict[str, Any]:
        return shopify_order(number, AT, f"{number}.00", customer={"id": number, "email": address})

    merged = {"status": "completed", "errors": []}
    names = ("admin_graphql_api_customer_kept_id", "admin_graphql_api_customer_deleted_id")
    webhooks = [
        (bought(1, "ann@example.com"), "orders/create"),
        (bought(2, "ann@example.com"), "orders/create"),
        (
            {names[0]: "gid://shopify/Customer/1", names[1]: "gid://shopify/Customer/2", **merged},
            "customers/merge",
        ),
        (
            {names[0]: "gid://shopify/Customer/3", names[1]: "gid://shopify/Customer/1", **merged},
            "customers/merge",
        ),
    ]
    for place in order:
        signed(site, *webhooks[place])
        signed(site, *webhooks[place])
    signed(site, bought(4, "ann@example.com"), "orders/create")
    signed(site, bought(3, "anne@example.com"), "orders/create")
    roots = [
        {(site.registry.store.lookup(site.organization, each) or {})["root"] for each in some}
        for some in (
            [*(Identity("customer", f"{site.organization}/ecommerce/{number}") for number in (1, 2, 3)),
             Identity("email", "anne@example.com")],
            [Identity("customer", f"{site.organization}/ecommerce/4")],
        )
    ]  # fmt: skip
    assert [len(some) for some in roots] == [1, 1]
    assert roots[0] != roots[1], "who is not joined stays apart"


def context_of(site: Site) -> Any:
    return read_envelope(site.message({}), "USD", NOW).context


def test_currencies_stay_apart_and_none_is_refused(site: Site) -> None:
    signed(site, shopify_order(1, AT, "100.00"), "orders/create")
    euro = shopify_order(2, AT, "70.00", currency="EUR")
    euro["customer"] = shopify_order(1, AT)["customer"]
    yen = shopify_order(3, AT, "5000", currency="JPY")
    yen["customer"] = euro["customer"]
    for body in (euro, yen):
        signed(site, body, "orders/create")
    signed(site, shopify_refund(5, 2, AT, "20.00", currency="EUR"), "refunds/create")
    found = features(site)
    assert (found["monetary_total"], found["average_order_value"]) == (10_000, 10_000)
    assert found["frequency_purchases_90d"] == 3
    assert found["foreign"] == {"EUR": (1, 5_000), "JPY": (1, 5_000)}


def in_two_currencies(shop: str, customer: str) -> dict[str, Any]:
    return {
        "shop_money": {"amount": shop, "currency_code": "USD"},
        "presentment_money": {"amount": customer, "currency_code": "EUR"},
    }


ABROAD = shopify_order(
    7, AT, "110.00", presentment_currency="EUR", total_price_set=in_two_currencies("110.00", "100.00")
)
WITH_SETS = shopify_refund(9, 7, AT, "100.00", currency="EUR")
WITH_SETS["transactions"][0]["amount_set"] = in_two_currencies("110.00", "100.00")


@pytest.mark.parametrize(
    "refunds",
    [
        [shopify_refund(9, 7, AT, "100.00", currency="EUR")],
        [
            shopify_refund(n, 7, AT, amount, currency="EUR")
            for n, amount in ((9, "33.33"), (10, "33.33"), (11, "33.34"))
        ],
        [WITH_SETS],
        [
            shopify_refund(9, 7, AT, "60.00", currency="EUR"),
            shopify_refund(10, 7, AT, "44.00", currency="USD"),
        ],
    ],
)
@pytest.mark.parametrize("way", ["after", "within", "void"])
def test_what_is_paid_back_in_the_customer_s_currency_is_shop_money(
    site: Site, refunds: list[dict[str, Any]], way: str
) -> None:
    told = [(ABROAD, "orders/create"), *((each, "refunds/create") for each in refunds)]
    if way == "within":
        told = [({**ABROAD, "updated_at": later(5), "refunds": refunds}, "orders/updated"), *told]
    if way == "void":
        told.append(({**ABROAD, "updated_at": later(9), "cancelled_at": later(9)}, "orders/cancelled"))
    for body, topic in told:
        signed(site, body, topic)
    found = features(site)
    assert (found["monetary_total"], found["foreign"]) == (0, {})
    assert found["frequency_purchases_90d"] == (0 if way == "void" else 1)


def test_a_part_of_it_is_converted_and_an_order_may_be_told_in_either_currency(site: Site) -> None:
    in_euros = {**ABROAD, "currency": "EUR", "total_price": "100.00"}
    signed(site, in_euros, "orders/create")
    signed(site, shopify_refund(9, 7, AT, "50.00", currency="EUR"), "refunds/create")
    found = features(site)
    assert (found["monetary_total"], found["foreign"]) == (5_500, {})
    signed(site, {**ABROAD, "updated_at": later(5), "total_price": "odd"}, "orders/updated")
    assert features(site)["monetary_total"] == 5_500


def test_two_at_once_lose_nothing_and_a_death_between_is_made_good(site: Site) -> None:
    told = story(7, 9)
    for place in range(6):
        site.life.steps_left = place
        try:
            signed(site, *told[place])
        except BaseException as died:
            assert type(died).__name__ == "Died"
        site.life.steps_left = None
        signed(site, *told[place])
    assert features(site)["monetary_total"] == 10_000
    assert stamp(AT) in {each.occurred_at for each in site.stored()}
