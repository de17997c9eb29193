"""Amounts of several currencies are added up only where every rate is given."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.settings.choices import currency_of, exchange_rates
from rules.leads.orders import rates_in, total_in

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


@given(SPENT, RATES, st.sampled_from(["USD", "EUR", "JPY"]))
def test_in_whatever_currency_an_organization_counts_its_total_is_worth_the_same(
    spent: dict[str, Decimal], rates: dict[str, Decimal], own: str
) -> None:
    in_dollars, total = total_in("USD", spent, rates, 2), total_in(own, spent, rates_in(own, "USD", rates), 8)
    if in_dollars is None or (own != "USD" and own not in rates):
        foreign = any(amount for each, amount in spent.items() if each != own)
        assert (total is None) == (foreign and total is None)
        return
    assert total is not None
    assert abs(total * rates.get(own, Decimal(1)) - in_dollars) <= Decimal("0.006")


def test_an_organization_s_own_currency_or_everybody_s() -> None:
    setting = "USD acme=EUR shop.br=BRL"
    assert [currency_of(setting, each) for each in ("acme", "shop.br", "other", None)] == [
        *("EUR", "BRL", "USD", "USD"),
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
