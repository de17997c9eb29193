"""What a lead has spent, by currency and in all, as the API shows it."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from rules.leads.orders import EXPONENTS, total_in
from rules.leads.series import decode


def money_view(purchases: str | None, own: str) -> dict[str, dict[str, Any]]:
    """Return orders and what was spent by currency; nobody adds these up. purchases: the stored series."""
    if purchases is None:
        return {}
    series = decode(purchases)
    totals = {own: (series.priced, series.amount), **series.foreign}
    return {
        currency: {"orders": orders, "spent": Decimal(amount).scaleb(-EXPONENTS.get(currency, 2))}
        for currency, (orders, amount) in sorted(totals.items())
        if orders or amount
    }


def total_view(
    money: Mapping[str, Mapping[str, Any]], own: str, rates: Mapping[str, Decimal]
) -> dict[str, Any] | None:
    """Return what was spent in all, in the organization's own currency; None where a rate is missing."""
    spent = {currency: each["spent"] for currency, each in money.items()}
    total = total_in(own, spent, rates, EXPONENTS.get(own, 2))
    return None if total is None else {"currency": own, "spent": total}
