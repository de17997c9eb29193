"""Shops: orders and refunds, and their amounts to the last minor unit."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.leads.readers import DecodeError, decimal, minor_units, products
from tests.support.examples import examples
from tests.support.webhooks import (
    ORDER,
    REFUND,
    changed,
    decode,
)


def test_an_order() -> None:
    (event,) = decode("ecommerce", ORDER)
    assert (event.external_event_id, event.event_type) == ("order:820982911946154508", "purchase_completed")
    assert event.occurred_at == "2026-03-02T04:30:00.000000Z"
    assert [(each.channel, each.external_id) for each in event.identities] == [
        ("customer", "acme/shop/5"),
        ("email", "ada@example.com"),
    ]
    assert (event.object_id, event.object_id_ref) == ("820982911946154508", "order")
    assert event.payload == {
        "order_id": "820982911946154508",
        "amount_minor": 1177,
        "currency": "USD",
        "products": [{"product_id": "7", "quantity": 3}, {"product_id": "B", "quantity": 1}],
    }


def test_a_refund_counts_what_was_given_back_and_is_no_order() -> None:
    (event,) = decode("ecommerce", REFUND)
    assert (event.external_event_id, event.event_type) == ("refund:1", "order_refunded")
    assert event.payload == {"order_id": "820982911946154508", "amount_minor": 330, "currency": "USD"}
    (same,) = decode("ecommerce", changed(REFUND, "topic", ...))
    assert same == event


def test_when_it_was_processed_is_when_it_happened() -> None:
    (event,) = decode("ecommerce", {**ORDER, "processed_at": "2025-01-01T00:00:00Z"})
    assert event.occurred_at == "2025-01-01T00:00:00.000000Z"


def test_a_guest_s_order_belongs_to_its_email() -> None:
    (event,) = decode("ecommerce", {**ORDER, "customer": None, "email": "guest@example.com"})
    assert [each.external_id for each in event.identities] == ["guest@example.com"]


@pytest.mark.parametrize(
    ("amount", "currency", "minor"),
    [
        ("11.77", "USD", 1177),
        (11.77, "USD", 1177),
        (0.1, "USD", 10),
        (12, "USD", 1200),
        ("0", "USD", 0),
        ("11.7700", "USD", 1177),
        ("1000", "JPY", 1000),
        ("1000.00", "JPY", 1000),
        ("1.234", "KWD", 1234),
        (" 11.77\n", "USD", 1177),
        ("+11.77", "USD", 1177),
        (".99", "USD", 99),
        ("11.", "USD", 1100),
        (1e13, "USD", 10**15),
    ],
)
def test_amounts_are_exact(amount: Any, currency: str, minor: int) -> None:
    assert minor_units(amount, currency, "amount") == minor


@pytest.mark.parametrize(
    ("amount", "currency", "reason"),
    [
        ("11.775", "USD", "more than the 2 decimals of USD"),
        (0.1 + 0.2, "USD", "more than the 2 decimals"),
        ("1.5", "JPY", "more than the 0 decimals of JPY"),
        ("-0.01", "USD", "must be from 0"),
        ("10000000000000.01", "USD", "must be from 0"),
        ("1e3", "USD", "decimal number"),
        ("١٢", "USD", "decimal number"),
        ("1 1", "USD", "decimal number"),
        (".", "USD", "decimal number"),
        (True, "USD", "decimal number"),
        (None, "USD", "is missing"),
        ("", "USD", "is missing"),
        ([1], "USD", "decimal number"),
        (1e300, "USD", "decimal number"),
        (float("inf"), "USD", "decimal number"),
    ],
)
def test_amounts_that_are_none(amount: Any, currency: str, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason) as refused:
        minor_units(amount, currency, "total_price")
    assert refused.value.field == "total_price"


@given(st.integers(0, 10**13), st.sampled_from(["USD", "JPY", "BHD"]))
@settings(max_examples=examples(60))
def test_an_amount_survives_its_json_as_number_and_as_text(minor: int, currency: str) -> None:
    exponent = {"USD": 2, "JPY": 0, "BHD": 3}[currency]
    written = str(Decimal(minor).scaleb(-exponent))
    for sent in (json.loads(written), written):
        assert minor_units(sent, currency, "amount") == minor


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(1, 9)), max_size=8))
@settings(max_examples=examples(40))
def test_lines_of_one_product_are_summed(lines: list[tuple[str, int]]) -> None:
    found = products([{"sku": sku, "quantity": quantity} for sku, quantity in lines], "l")
    assert {each["product_id"]: each["quantity"] for each in found} == {
        sku: sum(quantity for other, quantity in lines if other == sku) for sku, _ in lines
    }


def test_decimals_read_exactly() -> None:
    assert decimal(0.1, "n") == Decimal("0.1")
    assert decimal(5, "n") == 5
